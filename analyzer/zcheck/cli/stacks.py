"""From the stack options of the command line to stacks."""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence

from zcheck.coverage import Database
from zcheck.errors import UsageError
from zcheck.model.stack import LaunchMode, Stack

_GFX = re.compile(r"gfx[0-9]{1,2}[0-9a-f]{2}")


def stacks_of(
    database: Database,
    zluda: Sequence[str] = (),
    launch_mode: str | None = None,
    hip_sdk: str | None = None,
    gpu: str | None = None,
    named: str | None = None,
) -> tuple[Stack, ...]:
    """One stack per ``--zluda`` (aliases become release tags); what is not given comes from the named or default stack.

    Raises UsageError for a release, SDK, GPU target, launch mode or stack name that no table knows.
    """
    base = _named(database, named or "default")
    if launch_mode is not None and launch_mode not in ("zluda-exe", "staged"):
        raise UsageError(f"launch mode {launch_mode!r} does not exist; choose zluda-exe or staged")
    if gpu is not None and not _GFX.fullmatch(gpu):
        raise UsageError(f"GPU {gpu!r} is no target name such as gfx1100; zcheck host shows the target of your card")
    if gpu is not None:
        _known_gpu(database, gpu)
    sdk = base.hip_sdk if hip_sdk is None else hip_sdk
    database.hip_sdk(sdk)
    mode: LaunchMode = launch_mode or base.launch_mode  # type: ignore[assignment]
    tags = [database.resolve_release(name).tag for name in zluda] or [base.zluda]
    return tuple(Stack(tag, mode, sdk, gpu or base.gpu) for tag in dict.fromkeys(tags))


def _known_gpu(database: Database, gpu: str) -> None:
    rows = database.query("SELECT gfx FROM gfx UNION SELECT gfx FROM gfx_extra UNION SELECT gfx FROM pci_gpu")
    names = sorted({row[0] for row in rows if row[0]}, key=lambda name: (len(name), name))
    if gpu not in names:
        raise UsageError(f"nothing is known of a GPU {gpu!r}; known are {', '.join(names)}")


def _named(database: Database, name: str) -> Stack:
    rows = {row[0]: row[1:] for row in database.query("SELECT name, zluda, launch_mode, hip_sdk, gpu FROM named_stack")}
    if name not in rows:
        near = difflib.get_close_matches(name, rows, 1)
        hint = f"; did you mean {near[0]}?" if near else f"; known are {', '.join(rows)}"
        raise UsageError(f"no stack is called {name!r}{hint}")
    zluda, mode, sdk, gpu = rows[name]
    return Stack(database.resolve_release(zluda).tag, mode, sdk, gpu or None)
