"""Nuitka's one-file payload (nuitka/build/static_src/OnefileBootstrap.c, Windows form).

``KA``, then ``X`` (plain) or ``Y`` (zstd); then for each file its UTF-16 name with a NUL, u64 size, in cached mode u32
CRC, and the bytes; an empty name ends it. The payload's u64 size stands at the end of the file (or before the
signature); newer versions keep the payload in a resource.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import BinaryIO

from zcheck.model.base import Problem
from zcheck.model.facts import PeFacts
from zcheck.parse.archive_base import BadMember, Budget, Member, TooLarge, escaping, kind_of, safe_path, window

_ZSTD = b"\x28\xb5\x2f\xfd"
_NAME = 2048


def payload(file: BinaryIO, facts: PeFacts | None) -> tuple[int, int, bool] | None:
    """(start, size, compressed) of the payload behind its three-byte header, or None."""
    size = file.seek(0, 2)
    ends = [size]
    if facts is not None and facts.overlay_size and facts.overlay_offset + facts.overlay_size != size:
        ends.append(facts.overlay_offset + facts.overlay_size)
    for end in ends:
        if end < 16:
            continue
        file.seek(end - 8)
        length = int.from_bytes(file.read(8), "little")
        if 3 < length <= end - 8:
            found = _header(file, end - 8 - length, length)
            if found:
                return found
    places = [(facts.overlay_offset, facts.overlay_size)] if facts is not None and facts.overlay_size else []
    places += [(s.offset, s.size) for s in (facts.sections if facts else ()) if s.name == ".rsrc"]
    for offset, length in places:
        length = min(length, size - offset)
        file.seek(offset)
        head = file.read(max(0, min(length, 1 << 20)))
        at = head.find(b"KAY" + _ZSTD)
        if at >= 0:
            return offset + at + 3, length - at - 3, True
    return None


def _header(file: BinaryIO, start: int, length: int) -> tuple[int, int, bool] | None:
    file.seek(start)
    head = file.read(7)
    if head[:3] == b"KAX" or (head[:3] == b"KAY" and head[3:7] == _ZSTD):
        return start + 3, length - 3, head[2:3] == b"Y"
    return None


def members(
    file: BinaryIO,
    name: str,
    found: tuple[int, int, bool],
    budget: Budget,
    problems: list[Problem],
    list_only: bool = False,
) -> Iterator[Member]:
    """The payload's files in order; read one after the other, for the stream cannot be entered in the middle.

    ``list_only``: the bytes are passed over, and opening a member raises BadMember.
    """
    import zstandard

    start, size, compressed = found
    checksums = _has_checksums(file, found)
    source = window(file, start, size)
    stream: BinaryIO = source
    if compressed:
        reader = zstandard.ZstdDecompressor(max_window_size=1 << 30).stream_reader(source, read_across_frames=True)
        stream = reader
    try:
        while True:
            text = _name(stream)
            if not text:
                return
            if not budget.entry():
                problems.append(Problem(path=name, reason=f"more than {budget.limits.entries} members", partial=True))
                return
            length = struct.unpack("<Q", _exactly(stream, 8))[0]
            if checksums:
                _exactly(stream, 4)
            path = safe_path(text)
            too_large = length > budget.limits.payload and not list_only
            if path is None or too_large:
                problems.append(
                    escaping(name, text)
                    if path is None
                    else Problem(
                        path=name, reason=f"member {path!r} takes {length} bytes, too many to hold", partial=True
                    )
                )
                _skip(stream, length, budget)
                continue
            if list_only:
                yield Member(path, length, kind_of(path), _not_kept)
                _skip(stream, length, budget)
                continue
            budget.take(length, max(1, length // budget.limits.ratio))
            data = _exactly(stream, length)
            yield Member(path, length, kind_of(path), lambda data=data: io.BytesIO(data))  # type: ignore[misc]
    except (zstandard.ZstdError, EOFError, struct.error, BadMember, ValueError) as error:
        problems.append(Problem(path=name, reason=f"Nuitka's payload cannot be read to its end: {error}", partial=True))


def _not_kept() -> BinaryIO:
    raise BadMember("it was listed only")


def _has_checksums(file: BinaryIO, found: tuple[int, int, bool]) -> bool:
    """Whether a CRC follows each size: the second name tells, it must be text."""
    import zstandard

    start, size, compressed = found
    for checksums in (False, True):
        source = window(file, start, size)
        stream: BinaryIO = source
        if compressed:
            stream = zstandard.ZstdDecompressor(max_window_size=1 << 30).stream_reader(source)
        try:
            _name(stream)
            length = struct.unpack("<Q", _exactly(stream, 8))[0]
            if checksums:
                _exactly(stream, 4)
            if length > 1 << 30:
                return False
            _skip(stream, length, None)
            text = _name(stream)
            if text.isprintable() and (not text or text.isascii()):
                return checksums
        except (zstandard.ZstdError, EOFError, struct.error, ValueError):
            continue
    return False


def _name(stream: BinaryIO) -> str:
    raw = bytearray()
    while len(raw) < _NAME:
        unit = _exactly(stream, 2)
        if unit == b"\0\0":
            return raw.decode("utf-16-le", "strict")
        raw += unit
    raise ValueError("a name does not end")


def _exactly(stream: BinaryIO, size: int) -> bytes:
    parts, left = [], size
    while left:
        data = stream.read(min(left, 1 << 20))
        if not data:
            raise EOFError("it ends too early")
        parts.append(data)
        left -= len(data)
    return b"".join(parts)


def _skip(stream: BinaryIO, size: int, budget: Budget | None) -> None:
    if budget is not None and budget.total + size > budget.limits.total_payload:
        raise TooLarge(f"more than {budget.limits.total_payload} bytes unpacked in all")
    if budget is not None:
        budget.total += size
    while size:
        data = stream.read(min(size, 1 << 20))
        if not data:
            raise EOFError("it ends too early")
        size -= len(data)
