"""Linux and macOS: the program in a session of its own; all of it found again by a mark in its environment.

Windows programs run in Wine, whose processes are started apart from one another; the mark ``ZCHECK_RUN`` in their
environment tells which belong to a run. Off Linux, which has no ``/proc``, the process group stands for the tree.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":  # also tells the type checker that the rest is not for Windows
    raise ImportError("zcheck.launch.posix is not for Windows")

import ctypes
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

from zcheck.launch.process import StartError

MARK = "ZCHECK_RUN"
_PROC = Path("/proc")
# Wine's own services, which one prefix's programs share: they end by themselves when the last program has
_WINE_SERVICES = frozenset(
    ("wineserver", "wineserver64", "services.exe", "winedevice.exe", "plugplay.exe", "svchost.exe", "explorer.exe")
)
_GRACE = 2.0
_PR_SET_PDEATHSIG = 1


def processes_of(run_id: str) -> list[int]:
    """Ids of running processes that bear the run's mark, Wine's services left out (Linux; elsewhere empty)."""
    wanted = f"{MARK}={run_id}".encode()
    found = []
    for entry in _PROC.glob("[0-9]*"):
        try:
            if entry.stat().st_uid != os.getuid() or wanted not in (entry / "environ").read_bytes().split(b"\0"):
                continue
            name = (entry / "comm").read_text(errors="replace").strip()
            state = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            continue
        if state not in "ZX" and name not in _WINE_SERVICES and int(entry.name) != os.getpid():
            found.append(int(entry.name))
    return found


class Session:
    """A program in a session of its own, and everything that it starts."""

    def __init__(self, process: subprocess.Popen[bytes], run_id: str) -> None:
        assert process.stdout is not None
        assert process.stderr is not None
        self._process, self._run_id = process, run_id
        self.stdout: IO[bytes] = process.stdout
        self.stderr: IO[bytes] = process.stderr

    def _all(self) -> list[int]:
        if _PROC.joinpath("self", "environ").exists():
            return processes_of(self._run_id)
        return []

    def poll(self) -> int | None:
        """Exit code, negative for a signal."""
        return self._process.poll()

    def alive(self) -> bool:
        """Whether the program or anything with its mark runs."""
        return self._process.poll() is None or bool(self._all())

    def _signal(self, number: int) -> None:
        with suppress(OSError):
            os.killpg(self._process.pid, number)
        for pid in self._all():
            with suppress(OSError):
                os.kill(pid, number)

    def interrupt(self) -> None:
        """SIGINT for the whole group."""
        with suppress(OSError):
            os.killpg(self._process.pid, signal.SIGINT)

    def kill(self) -> None:
        """SIGTERM, and after two seconds SIGKILL, until nothing is left."""
        self._signal(signal.SIGTERM)
        end = time.monotonic() + _GRACE
        while self.alive() and time.monotonic() < end:
            time.sleep(0.05)
        end = time.monotonic() + 5 * _GRACE
        while time.monotonic() < end:
            self._signal(signal.SIGKILL)  # again and again: what is being killed may just be starting another
            if not self.alive():
                break
            time.sleep(0.05)

    def modules(self) -> set[str]:
        """Files mapped as code that look like libraries or programs."""
        found: set[str] = set()
        for pid in {self._process.pid, *self._all()}:
            try:
                lines = (_PROC / str(pid) / "maps").read_text(errors="replace").splitlines()
            except OSError:
                continue
            for line in lines:
                parts = line.split(maxsplit=5)
                if len(parts) == 6 and parts[5].startswith("/") and ("x" in parts[1] or parts[5].endswith(".dll")):
                    found.add(parts[5].removesuffix(" (deleted)"))
        return found

    def close(self) -> None:
        """Closes the pipes."""
        self.stdout.close()
        self.stderr.close()


def _die_with_parent() -> None:
    """In the child: end when the launcher is killed (Linux), as the job object makes it on Windows."""
    if _LIBC is not None:
        _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


_LIBC = ctypes.CDLL(None) if sys.platform == "linux" else None


def start_in_session(command: Sequence[str], environment: Mapping[str, str], cwd: str, run_id: str) -> Session:
    """Starts a program in a new session with pipes; raises StartError."""
    try:
        process = subprocess.Popen(
            list(command),
            env={**environment, MARK: run_id},
            cwd=cwd or None,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
            preexec_fn=_die_with_parent if sys.platform == "linux" else None,
        )
    except OSError as error:
        raise StartError(f"{command[0]}: cannot be started ({error.strerror or error})") from None
    return Session(process, run_id)
