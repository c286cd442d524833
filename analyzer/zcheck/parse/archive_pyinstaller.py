"""PyInstaller's CArchive behind a program (bootloader/common/pyi_archive.h and PyInstaller/archive of 2.1 to 6).

The cookie near the end of the file gives the archive's start and its table of contents; the PYZ inside lists the Python
modules in a marshalled table, of which only lists, tuples, numbers and strings are read here: nothing is unmarshalled
into code or executed.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from zcheck.model.base import Problem
from zcheck.parse.archive_base import BadMember, Budget, Member, escaping, inflate, kind_of, safe_path, window

MAGIC = b"MEI\x0c\x0b\x0a\x0b\x0e"
_COOKIE = struct.Struct("!8sIIII64s")
_ENTRY = struct.Struct("!IIIIBc")
_SEARCH = 1024 * 1024
"""bytes at the end of the file in which the cookie is looked for (a signature may stand behind it)"""
_KINDS = {"b": "file", "x": "file", "z": "pyz", "s": "script", "m": "python-module", "M": "python-module", "Z": "file"}
_TABLE = 64 * 1024 * 1024


class Cookie(NamedTuple):
    """Where the archive lies: file offsets and sizes in bytes."""

    start: int
    toc: int
    toc_size: int
    python: int
    library: str


def cookie(file: BinaryIO) -> Cookie | None:
    """The cookie of a CArchive, or None; it is checked against the file's size."""
    size = file.seek(0, 2)
    base = max(0, size - _SEARCH)
    file.seek(base)
    tail = file.read(_SEARCH)
    at = tail.rfind(MAGIC)
    while at >= 0:
        if at + _COOKIE.size <= len(tail):
            _, length, toc, toc_size, python, library = _COOKIE.unpack_from(tail, at)
            end = base + at + _COOKIE.size
            start = end - length
            if start >= 0 and toc + toc_size <= length and 0 < toc_size <= _TABLE:
                return Cookie(start, start + toc, toc_size, python, library.split(b"\0")[0].decode("latin-1"))
        at = tail.rfind(MAGIC, 0, at)
    return None


def members(file: BinaryIO, name: str, found: Cookie, budget: Budget, problems: list[Problem]) -> Iterator[Member]:
    """Files of the archive, and the modules of its PYZ (kind ``python-module``, listed with their size packed)."""
    file.seek(found.toc)
    table = file.read(found.toc_size)
    at = 0
    while at + _ENTRY.size <= len(table):
        length, offset, packed, size, compressed, letter = _ENTRY.unpack_from(table, at)
        if length < _ENTRY.size or at + length > len(table):
            problems.append(
                Problem(path=name, reason="PyInstaller's table of contents is damaged", offset=at, partial=True)
            )
            return
        text = table[at + _ENTRY.size : at + length].split(b"\0")[0].decode("utf-8", "replace")
        at += length
        kind = _KINDS.get(letter.decode("latin-1"))
        if kind is None or not text:
            continue  # run-time options, links and dependencies on other archives hold no file
        if not budget.entry():
            problems.append(Problem(path=name, reason=f"more than {budget.limits.entries} members", partial=True))
            return
        path = safe_path(text)
        if path is None:
            problems.append(escaping(name, text))
            continue
        start = found.start + offset
        if kind == "pyz":
            yield from _modules(file, name, start, packed, budget, problems)
            continue
        if kind == "file":
            kind = kind_of(path)

        def open_member(start: int = start, packed: int = packed, size: int = size, z: int = compressed) -> BinaryIO:
            if not z:
                return window(file, start, packed)
            if packed > budget.limits.payload:
                raise BadMember(f"it takes {packed} bytes packed")
            file.seek(start)
            return io.BytesIO(inflate(file.read(packed), size, 15, budget))

        yield Member(path, size, kind, open_member)


def _modules(
    file: BinaryIO, name: str, start: int, packed: int, budget: Budget, problems: list[Problem]
) -> Iterator[Member]:
    file.seek(start)
    head = file.read(12)
    if len(head) < 12 or head[:4] != b"PYZ\0":
        problems.append(
            Problem(path=name, reason="the PYZ archive does not begin with PYZ", offset=start, partial=True)
        )
        return
    toc = struct.unpack_from("!I", head, 8)[0]
    if not 12 <= toc <= packed:
        problems.append(
            Problem(path=name, reason="the PYZ archive's table lies outside of it", offset=start, partial=True)
        )
        return
    file.seek(start + toc)
    data = file.read(min(packed - toc, _TABLE))
    try:
        rows = Marshal(data, budget.limits.entries).read()
    except (ValueError, IndexError, struct.error) as error:
        problems.append(Problem(path=name, reason=f"the PYZ archive's table is damaged: {error}", partial=True))
        return
    for row in rows if isinstance(rows, (list, tuple)) else ():
        if isinstance(row, tuple) and len(row) == 2 and isinstance(row[0], str) and isinstance(row[1], tuple):
            if not budget.entry():
                problems.append(Problem(path=name, reason=f"more than {budget.limits.entries} members", partial=True))
                return
            size = row[1][2] if len(row[1]) == 3 and isinstance(row[1][2], int) else 0
            yield Member(row[0].replace(".", "/") + ".pyc", size, "python-module", _no_module)


def _no_module() -> BinaryIO:
    raise BadMember("compiled Python is not read")


class Marshal:
    """Reads lists, tuples, whole numbers, strings and None of marshal format 4; ValueError on any other type."""

    def __init__(self, data: bytes, most: int) -> None:
        self.data, self.at, self.left = data, 0, most * 8
        self.references: list[object] = []

    def read(self, depth: int = 0) -> object:
        """The object at the current place."""
        self.left -= 1
        if self.left < 0 or depth > 8:
            raise ValueError("too much or too deeply nested")
        byte = self.data[self.at]
        self.at += 1
        code, reference = chr(byte & 0x7F), bool(byte & 0x80)
        slot = len(self.references)
        if reference:
            self.references.append(None)
        value = self._value(code, depth)
        if reference:
            self.references[slot] = value
        return value

    def _value(self, code: str, depth: int) -> object:
        if code in "NTF":
            return {"N": None, "T": True, "F": False}[code]
        if code == "i":
            return self._number(4)
        if code == "r":
            return self.references[self._number(4)]
        if code in "zZ":
            return self._text(self._number(1))
        if code in "aAust":
            return self._text(self._number(4))
        if code in ")([":
            count = self._number(1) if code == ")" else self._number(4)
            if count < 0 or count > len(self.data) - self.at:
                raise ValueError("a list is longer than the table")
            items = [self.read(depth + 1) for _ in range(count)]
            return items if code == "[" else tuple(items)
        raise ValueError(f"type {code!r} does not belong there")

    def _number(self, width: int) -> int:
        if self.at + width > len(self.data):
            raise ValueError("it ends too early")
        value = int.from_bytes(self.data[self.at : self.at + width], "little", signed=width == 4)
        self.at += width
        return value

    def _text(self, size: int) -> str:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("a name is longer than the table")
        text = self.data[self.at : self.at + size].decode("utf-8", "replace")
        self.at += size
        return text
