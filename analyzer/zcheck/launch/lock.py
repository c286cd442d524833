"""One run at a time per folder: locks under the user's own data folder, dying with the process that holds them."""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import IO

from zcheck.errors import ZcheckError


class Busy(ZcheckError):
    """Another run holds the folder."""

    exit_code = 125


def folder_key(folder: str | Path) -> str:
    """A short name for a folder that is the same however the folder is spelt."""
    return hashlib.sha256(os.path.normcase(os.path.realpath(folder)).encode("utf-8", "surrogatepass")).hexdigest()[:24]


def _acquire(handle: IO[bytes]) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            handle.seek(0)
            msvcrt.locking(handle.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(handle.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


class FolderLock:
    """Holds the locks of some folders; a context manager. Raises Busy naming the folder, OSError for the data folder.

    The lock files are never removed: removing one while another process waits on it would let two in.
    """

    def __init__(self, folders: Iterable[str | Path], data: Path) -> None:
        self._folders = sorted({folder_key(folder): str(folder) for folder in folders}.items())
        self._data = data
        self._handles: list[IO[bytes]] = []

    def __enter__(self) -> FolderLock:
        place = self._data / "locks"
        place.mkdir(parents=True, exist_ok=True)
        for key, folder in self._folders:
            handle = open(place / f"{key}.lock", "a+b")
            if not _acquire(handle):
                handle.close()
                self.release()
                raise Busy(f"{folder}: another zcheck run or undo is at work there; wait until it has ended")
            self._handles.append(handle)
        return self

    def release(self) -> None:
        """Gives all locks back."""
        while self._handles:
            self._handles.pop().close()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()
