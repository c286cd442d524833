"""The names of this machine and its user, for redaction; the one place that looks them up."""

from __future__ import annotations

import getpass
import os
import platform
import socket
from collections.abc import Mapping
from pathlib import Path

from zcheck.render import RedactionNames


def local_names(environ: Mapping[str, str] | None = None) -> RedactionNames:
    """User, machine and home folder names as the environment (``os.environ`` unless given) and the system tell them."""
    env = os.environ if environ is None else environ
    homes = {env.get("USERPROFILE", ""), env.get("HOME", "")}
    if env.get("HOMEDRIVE") and env.get("HOMEPATH"):
        homes.add(env["HOMEDRIVE"] + env["HOMEPATH"])
    users = {env.get(key, "") for key in ("USERNAME", "USER", "LOGNAME", "SUDO_USER")}
    machines = {env.get(key, "") for key in ("COMPUTERNAME", "HOSTNAME", "USERDOMAIN")}
    if environ is None:
        try:
            homes.add(str(Path.home()))
            users.add(getpass.getuser())
        except (RuntimeError, OSError, KeyError):
            pass  # an account without an entry or a home
        machines |= {socket.gethostname(), platform.node()}
    machines |= {name.split(".", 1)[0] for name in machines}
    # A profile folder may be called otherwise than its user (ANN~1, ann.DOMAIN).
    users |= {home.replace("\\", "/").rstrip("/").rsplit("/", 1)[-1] for home in homes}
    return RedactionNames(_clean(users), _clean(machines), _clean(homes))


def _clean(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(name for name in names if name.strip()))
