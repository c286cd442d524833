"""The bundle of a .NET single-file program (dotnet/runtime, Microsoft.NET.HostModel.Bundle: Manifest and FileEntry).

In the host, eight bytes before a fixed 32-byte signature hold the manifest's offset: u32 major, u32 minor, i32 files,
string id; from version 2 the places of deps.json and runtimeconfig.json and u64 flags; then for each file i64 offset,
i64 size, from version 6 i64 packed size (0 plain, else raw deflate), u8 type, string path. Strings carry a 7-bit
length.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from zcheck.model.base import Problem
from zcheck.parse.archive_base import Budget, Member, escaping, inflate, kind_of, safe_path, window

SIGNATURE = bytes.fromhex("8b1202b96a612038727b930214d7a03213f5b9e6efae3318ee3b2dce24b36aae")
_PIECE = 4 * 1024 * 1024
_MANIFEST = 64 * 1024 * 1024


class Bundle(NamedTuple):
    """The manifest's place and its version."""

    offset: int
    major: int
    minor: int
    files: int


def bundle(file: BinaryIO, end: int | None = None) -> Bundle | None:
    """The bundle that the host in ``file`` points to, or None (a plain apphost points to 0).

    ``end``: where to stop looking for the signature (the start of the overlay: it is in the host's own data).
    """
    size = file.seek(0, 2)
    at = _find(file, min(end or size, size))
    if at is None or at < 8:
        return None
    file.seek(at - 8)
    offset = struct.unpack("<q", file.read(8))[0]
    if not 0 < offset < size - 12:
        return None
    file.seek(offset)
    major, minor, files = struct.unpack("<IIi", file.read(12))
    if not (1 <= major <= 100 and 0 <= files <= 1_000_000):
        return None
    return Bundle(offset, major, minor, files)


def _find(file: BinaryIO, end: int) -> int | None:
    base = 0
    while base < end:
        file.seek(base)
        data = file.read(min(_PIECE + len(SIGNATURE), end - base))
        at = data.find(SIGNATURE)
        if at >= 0:
            return base + at
        base += _PIECE
    return None


def members(file: BinaryIO, name: str, found: Bundle, budget: Budget, problems: list[Problem]) -> Iterator[Member]:
    """The bundled files in the manifest's order."""
    size = file.seek(0, 2)
    file.seek(found.offset)
    reader = _Reader(file.read(min(_MANIFEST, size - found.offset)))
    try:
        reader.take(12)
        reader.text()
        if found.major >= 2:
            reader.take(40)
        for _ in range(found.files):
            offset, length = struct.unpack("<qq", reader.take(16))
            packed = struct.unpack("<q", reader.take(8))[0] if found.major >= 6 else 0
            reader.take(1)
            text = reader.text()
            if not budget.entry():
                problems.append(Problem(path=name, reason=f"more than {budget.limits.entries} members", partial=True))
                return
            stored = packed or length
            if offset < 0 or length < 0 or packed < 0 or offset + stored > size:
                problems.append(
                    Problem(path=name, reason=f"member {text[:120]!r} lies outside of the file", partial=True)
                )
                continue
            path = safe_path(text)
            if path is None:
                problems.append(escaping(name, text))
                continue

            def open_member(offset: int = offset, length: int = length, packed: int = packed) -> BinaryIO:
                if not packed:
                    return window(file, offset, length)
                file.seek(offset)
                return io.BytesIO(inflate(file.read(packed), length, -15, budget))

            yield Member(path, length, kind_of(path), open_member)
    except (struct.error, ValueError) as error:
        problems.append(Problem(path=name, reason=f"the bundle's manifest is damaged: {error}", partial=True))


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        if size < 0 or self.at + size > len(self.data):
            raise ValueError("it ends too early")
        self.at += size
        return self.data[self.at - size : self.at]

    def text(self) -> str:
        length = shift = 0
        while True:
            byte = self.take(1)[0]
            length |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                break
            if shift > 28:
                raise ValueError("a string's length is damaged")
        return self.take(length).decode("utf-8", "replace")
