"""What the readers of one-file programs share: members, their bounds, safe paths, a window into a file."""

from __future__ import annotations

import io
import posixpath
import re
import zlib
from collections.abc import Callable
from typing import BinaryIO, NamedTuple

from zcheck.model.base import Limits, Problem


class Member(NamedTuple):
    """A file inside a file. ``open`` gives a seekable binary file in memory (or a window into the archive); it may be
    called until the next member is asked for. It raises :class:`TooLarge` or :class:`BadMember`."""

    path: str
    size: int
    kind: str
    open: Callable[[], BinaryIO]


class BadMember(Exception):
    """A member that cannot be read; the text says why."""


class TooLarge(BadMember):
    """A member, or all members together, beyond the limits: a zip bomb, or a file too large to hold in memory."""


class Budget:
    """Counts what has been unpacked of one file, over all nesting."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self.entries = 0
        self.total = 0

    def entry(self) -> bool:
        """Count one more member; False when there are too many."""
        self.entries += 1
        return self.entries <= self.limits.entries

    def take(self, size: int, packed: int) -> None:
        """Count an unpacking of ``size`` bytes out of ``packed``; raises TooLarge when a limit is passed."""
        if size > self.limits.payload:
            raise TooLarge(f"{size} bytes unpacked, the limit is {self.limits.payload}")
        if self.total + size > self.limits.total_payload:
            raise TooLarge(f"more than {self.limits.total_payload} bytes unpacked in all")
        if size > 1 << 20 and size > self.limits.ratio * max(packed, 1):
            raise TooLarge(f"{packed} bytes claim to unpack to {size}")
        self.total += size


class Window(io.RawIOBase):
    """Bytes ``start`` to ``start + size`` of another file, read only and without a copy."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        super().__init__()
        self._file, self._start, self._size, self._at = file, start, size, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        base = (0, self._at, self._size)[whence]
        self._at = max(0, base + offset)
        return self._at

    def tell(self) -> int:
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        left = max(0, self._size - self._at)
        count = left if size is None or size < 0 else min(size, left)
        self._file.seek(self._start + self._at)
        data = self._file.read(count)
        self._at += len(data)
        return data

    def readinto(self, buffer: object) -> int:
        view = memoryview(buffer)  # type: ignore[arg-type]
        data = self.read(len(view))
        view[: len(data)] = data
        return len(data)


def window(file: BinaryIO, start: int, size: int) -> BinaryIO:
    """A window as a binary file; raises BadMember when it reaches beyond the file."""
    if start < 0 or size < 0 or start + size > file.seek(0, 2):
        raise BadMember("it reaches beyond the end of the file")
    return Window(file, start, size)  # type: ignore[return-value]


def inflate(data: bytes, size: int, bits: int, budget: Budget) -> bytes:
    """zlib data (``bits`` 15, raw deflate −15) unpacked to at most ``size`` bytes."""
    budget.take(size, len(data))
    engine = zlib.decompressobj(bits)
    try:
        out = engine.decompress(data, size + 1)
    except zlib.error as error:
        raise BadMember(f"its data is damaged ({error})") from error
    if len(out) > size:
        raise TooLarge(f"it unpacks to more than the {size} bytes that its entry names")
    return out


def safe_path(name: str) -> str | None:
    """The member's path inside the archive with ``/``, or None when it points out of it (``..``, a drive, a root)."""
    text = name.replace("\\", "/")
    if "\0" in text or re.match(r"[A-Za-z]:", text) or text.startswith("/"):
        return None
    text = posixpath.normpath(text)
    if text in ("", ".") or text == ".." or text.startswith("../"):
        return None
    return text


def kind_of(path: str) -> str:
    """file, pe, python-module or script, by the name's ending."""
    ending = path.rsplit(".", 1)[-1].lower() if "." in path else ""
    if ending in ("exe", "dll", "pyd", "node", "ocx", "sys"):
        return "pe"
    if ending in ("py", "pyw", "js", "mjs", "cjs", "bat", "cmd", "ps1", "lua", "rb"):
        return "script"
    return "python-module" if ending in ("pyc", "pyo") else "file"


def escaping(archive: str, name: str) -> Problem:
    """The Problem of a member whose path points out of its archive."""
    return Problem(
        path=archive, reason=f"member {name[:120]!r} points out of the archive and was not read", partial=True
    )
