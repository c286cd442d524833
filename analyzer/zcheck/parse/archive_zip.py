"""Zip archives, alone or behind a program (APPNOTE.TXT 6.3): jars, wheels, distlib launchers, self-extractors.

Uses the standard zipfile, with the sizes of the central directory checked before anything is unpacked.
"""

from __future__ import annotations

import io
import stat
import struct
import zipfile
import zlib
from collections.abc import Iterator
from typing import BinaryIO

from zcheck.model.base import Problem
from zcheck.parse.archive_base import BadMember, Budget, Member, TooLarge, escaping, kind_of, safe_path, window

END = b"PK\x05\x06"
_TAIL = 65_557
"""the longest end record: 22 bytes and a comment"""
_SMALL = 64 * 1024 * 1024
"""bytes of central directory that are read"""


def has_end(file: BinaryIO) -> bool:
    """True when an end-of-central-directory record stands at the end of the file."""
    return _end(file) is not None


def _end(file: BinaryIO) -> tuple[int, int, int] | None:
    """(members, bytes of the central directory, offset of the end record)."""
    size = file.seek(0, 2)
    start = max(0, size - _TAIL)
    file.seek(start)
    tail = file.read(_TAIL)
    at = tail.rfind(END)
    while at >= 0:
        if len(tail) >= at + 22:
            count, directory, offset, comment = struct.unpack_from("<HIIH", tail, at + 10)
            place = start + at
            fits = directory <= place and (offset <= place or offset == 0xFFFFFFFF or directory == 0xFFFFFFFF)
            if fits and at + 22 + comment <= len(tail):
                return count, directory, place
        at = tail.rfind(END, 0, at)
    return None


def members(file: BinaryIO, name: str, budget: Budget, problems: list[Problem]) -> Iterator[Member]:
    """The archive's files, in the order of its directory; what cannot be read goes to ``problems``."""
    end = _end(file)
    if end is None:
        return
    if end[1] > _SMALL and end[1] != 0xFFFFFFFF:
        problems.append(Problem(path=name, reason=f"the archive's directory takes {end[1]} bytes", partial=True))
        return
    try:
        archive = zipfile.ZipFile(file)
    except (
        zipfile.BadZipFile,
        OSError,
        ValueError,
        NotImplementedError,
        struct.error,
        OverflowError,
        IndexError,
    ) as error:
        problems.append(Problem(path=name, reason=f"zip archive cannot be read: {error}", partial=True))
        return
    for info in archive.infolist():
        if not info.filename or info.filename.endswith("/"):  # is_dir() of Python 3.11 fails on an empty name
            continue
        if not budget.entry():
            problems.append(Problem(path=name, reason=f"more than {budget.limits.entries} members", partial=True))
            return
        path = safe_path(info.filename)
        if path is None:
            problems.append(escaping(name, info.filename))
            continue
        mode = info.external_attr >> 16
        if stat.S_ISLNK(mode):
            problems.append(Problem(path=name, reason=f"member {path!r} is a symbolic link and was not followed"))
            continue
        yield Member(path, info.file_size, kind_of(path), lambda info=info: _open(file, archive, info, budget))  # type: ignore[misc]


def _open(file: BinaryIO, archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget) -> BinaryIO:
    if info.flag_bits & 1:
        raise BadMember("it is encrypted")
    if info.compress_type == zipfile.ZIP_STORED and info.file_size == info.compress_size:
        file.seek(info.header_offset)
        header = file.read(30)
        if len(header) == 30 and header[:4] == b"PK\x03\x04":
            name, extra = struct.unpack_from("<HH", header, 26)
            return window(file, info.header_offset + 30 + name + extra, info.file_size)
    return io.BytesIO(read_member(archive, info, budget))


def read_member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, budget: Budget, most: int | None = None) -> bytes:
    """A member unpacked, at most ``most`` bytes and as large as its entry says; raises BadMember and TooLarge."""
    if info.flag_bits & 1:
        raise BadMember("it is encrypted")
    if most is not None and info.file_size > most:
        raise TooLarge(f"{info.file_size} bytes unpacked, at most {most} are read")
    budget.take(info.file_size, info.compress_size)
    try:
        with archive.open(info) as member:
            data = member.read(info.file_size + 1)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, NotImplementedError, RuntimeError, ValueError) as error:
        raise BadMember(f"its data is damaged ({error})") from error
    if len(data) > info.file_size:
        raise TooLarge("it unpacks to more than its entry names")
    return data
