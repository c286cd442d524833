"""A launcher that is really ended (TerminateProcess, SIGKILL) at a given step of staging or of recovery.

``dying_launcher.py stage|recover APP ZLUDA DATA STEPS``
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

from zcheck.launch.disk import Disk, sha256_of
from zcheck.launch.journal import make_journal, read_journals, recover, stage
from zcheck.model.launch import StageFile


def die() -> None:
    """Ends this process at once, without any cleaning up."""
    if sys.platform == "win32":
        import ctypes

        ctypes.windll.kernel32.TerminateProcess(ctypes.c_void_p(-1), 9)
    os.kill(os.getpid(), signal.SIGKILL)


class Dying(Disk):
    """Counts changes and ends the process instead of the one after the last."""

    def __init__(self, steps: int) -> None:
        self.left = steps

    def _step(self, change: Callable[[], None]) -> None:
        if self.left <= 0:
            die()
        self.left -= 1
        change()

    def copy(self, source: Path, target: Path) -> None:
        self._step(lambda: Disk.copy(self, source, target))

    def rename(self, source: Path, target: Path) -> None:
        self._step(lambda: Disk.rename(self, source, target))

    def replace(self, source: Path, target: Path) -> None:
        self._step(lambda: Disk.replace(self, source, target))

    def remove(self, path: Path) -> None:
        self._step(lambda: Disk.remove(self, path))

    def write(self, path: Path, data: bytes) -> None:
        self._step(lambda: Disk.write(self, path, data))


def main() -> None:
    """Does what the arguments say."""
    what, app, zluda, data = sys.argv[1], *(Path(argument) for argument in sys.argv[2:5])
    disk = Dying(int(sys.argv[5]))
    if what == "recover":
        for left in read_journals(data)[0]:
            recover(left, data, disk)
        return
    files = []
    for source in sorted(zluda.iterdir()):
        target = app / source.name
        original = sha256_of(target) if target.exists() else None
        files.append(StageFile(str(source), str(target), sha256_of(source), source.stat().st_size, original))
    stage(make_journal(str(app / "app.exe"), files), data, disk)
    print("staged")


if __name__ == "__main__":
    main()
