"""A bounded walk over a folder tree: what is there, and what was not looked at and why."""

from __future__ import annotations

import os
import stat
from collections import deque
from pathlib import Path

from zcheck.discover.kinds import kind_of
from zcheck.model.base import Skipped
from zcheck.model.bundle import BundleFile
from zcheck.model.text import encodable, shown

MAX_DEPTH = 40
"""folders inside of one another"""
_IGNORED = {"__pycache__", ".git", ".hg", ".svn", "$recycle.bin", "system volume information"}


class Walk:
    """Collects files below ``root``. Nearer folders come first, so that a bound cuts off what is far away."""

    def __init__(self, root: Path, max_entries: int) -> None:
        self.root = root
        self.left = max_entries
        self.max_entries = max_entries
        self.files: dict[str, BundleFile] = {}
        self.skipped: list[Skipped] = []
        self._seen: set[tuple[int, int]] = set()
        self._full = False

    def add(self, folder: str = "", recursive: bool = True) -> None:
        """Walks one folder, given relative to the root with ``/``; none is walked twice."""
        queue = deque([(folder, 0)])
        links: deque[tuple[str, int]] = deque()  # taken last, so that a file goes by the path it really has
        while queue or links:
            relative, depth = queue.popleft() if queue else links.popleft()
            here = self.root / relative if relative else self.root
            try:
                state = here.stat()
                if (state.st_dev, state.st_ino) in self._seen and state.st_ino:
                    if here.is_symlink():
                        self._skip(relative, "a link to a folder that was looked at already")
                    continue
                self._seen.add((state.st_dev, state.st_ino))
                with os.scandir(here) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                self._skip(relative, f"cannot be read: {error.strerror or error}")
                continue
            below: list[str] = []
            for entry in entries:
                if self.left <= 0:
                    self._stop(relative)
                    return
                self.left -= 1
                path = f"{relative}/{entry.name}" if relative else entry.name
                if self._is_folder(entry, path):
                    below.append(path)
            if not recursive:
                if below:
                    self._skip(relative, f"{len(below)} folders below it were not looked at")
                continue
            if depth >= MAX_DEPTH and below:
                self._skip(relative, f"folders more than {MAX_DEPTH} levels deep were not looked at")
                continue
            for path in below:
                (links if (self.root / path).is_symlink() else queue).append((path, depth + 1))

    def _is_folder(self, entry: os.DirEntry[str], path: str) -> bool:
        """Notes a file, or says that the entry is a folder to walk."""
        if entry.name.lower() in _IGNORED:
            return False
        kind = kind_of(entry.name)
        try:
            is_folder = entry.is_dir()
            if is_folder:
                if not encodable(entry.name):
                    self._skip(path, "its name is not valid Unicode")
                    return False
                if entry.is_symlink() and self._leads_out(entry.path):
                    self._skip(path, "a link to a folder around this one")
                    return False
                return True
            if kind is None:
                return False
            state = entry.stat()
        except OSError as error:
            if kind is not None:
                self._skip(path, f"cannot be read: {error.strerror or error}")
            return False
        if not stat.S_ISREG(state.st_mode):
            self._skip(path, "not a regular file")
        elif not encodable(entry.name):
            self._skip(path, "its name is not valid Unicode")
        elif any(ord(char) < 32 or char == "\\" for char in entry.name):
            self._skip(path, "its name has characters that Windows does not allow")
        else:
            self.files[path] = BundleFile(path=path, kind=kind, size=state.st_size)
        return False

    def _leads_out(self, target: str) -> bool:
        """True for a link to a folder that the root lies in: it would bring in everything beside the application."""
        real, root = os.path.realpath(target), os.path.realpath(self.root)
        return root != real and root.startswith(real.rstrip(os.sep) + os.sep)

    def _stop(self, relative: str) -> None:
        if not self._full:
            self._full = True
            self._skip(relative, f"more than {self.max_entries:,} entries; the rest was not looked at")

    def _skip(self, path: str, reason: str) -> None:
        self.skipped.append(Skipped(path=shown(path) or ".", reason=reason))
