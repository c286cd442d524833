"""A PE file as the loader maps it: headers by pefile, addresses to bytes without ever reading the whole file.

pefile reads the headers and the section table (``fast_load``). The import, export and resource tables are walked by
their own modules on top of this class and not by pefile 2023.2.7, because its readers lose what real files hold,
silently: they stop at 8,192 symbols and at 512-byte names, drop names with characters outside of a list, give up where
the names of one table lie more than 128 MiB apart, rename ordinals, take virtual addresses of delay imports for 32-bit
files only, and copy the whole section of an export table, which in a 1.8 GB file is most of it.
"""

from __future__ import annotations

import mmap
import os
import stat
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from zcheck.errors import InputError
from zcheck.model.base import Limits, Problem
from zcheck.model.text import shown

HEADER_SLICE = 16 * 1024 * 1024
"""bytes that pefile may copy at once; it copies all bytes before the first section as "the header" """
PAGE = 0x1000
MAX_PROBLEMS = 64
"""problems of one file that are told"""
# Data directories (Microsoft, PE Format, "Optional Header Data Directories")
EXPORT, IMPORT, RESOURCE, SECURITY, LOAD_CONFIG, DELAY_IMPORT, CLR = 0, 1, 2, 4, 10, 13, 14


class _Window:
    """The mapping as pefile sees it: its slices are bounded, whatever a header says."""

    def __init__(self, data: mmap.mmap) -> None:
        self._data = data

    def __len__(self) -> int:
        return len(self._data)

    def __getitem__(self, key: slice) -> bytes:
        start, stop, step = key.indices(len(self._data))
        return self._data[start : min(stop, start + HEADER_SLICE) : step]


class Image:
    """One opened PE file. Offsets and sizes are bytes; addresses are RVAs."""

    def __init__(self, name: str, data: mmap.mmap, pe: Any, limits: Limits) -> None:
        self.name = name
        self.data = data
        self.size = len(data)
        self.pe = pe
        self.limits = limits
        self.problems: list[Problem] = []
        self.header: Any = pe.OPTIONAL_HEADER
        self.base: int = self.header.ImageBase
        self.wide: bool = self.header.Magic == 0x20B
        self.names_left = self.size + (1 << 20)
        """characters that names may still take: together they are no longer than the file that holds them"""
        self._spans: list[tuple[int, int, int, int]] = []  # first RVA, end RVA, file offset, end of file-backed bytes
        flat = self.header.SectionAlignment < PAGE
        for section in pe.sections:
            raw = section.PointerToRawData
            # The loader rounds down to 512 bytes whatever FileAlignment says, except in files mapped flat.
            offset = raw if flat else raw & ~0x1FF
            virtual = section.Misc_VirtualSize or section.SizeOfRawData
            end = section.VirtualAddress + -(-virtual // PAGE) * PAGE
            backed = min(section.SizeOfRawData + (raw - offset), end - section.VirtualAddress) if raw else 0
            self._spans.append((section.VirtualAddress, end, offset, min(offset + backed, self.size)))
        first = min((span[0] for span in self._spans), default=1 << 32)
        self._spans.append((0, min(first, self.header.SizeOfHeaders or first), 0, min(first, self.size)))
        self._last = self._spans[0]

    def problem(self, reason: str, offset: int | None = None, partial: bool = True) -> None:
        """Notes something odd; ``partial`` when facts are missing because of it."""
        if len(self.problems) < MAX_PROBLEMS:
            note = Problem(path=self.name, reason=reason, offset=offset, partial=partial)
            if note not in self.problems:
                self.problems.append(note)

    def directory(self, index: int) -> tuple[int, int]:
        """RVA and size of a data directory; (0, 0) when the header has none."""
        directories = self.header.DATA_DIRECTORY
        if index >= len(directories):
            return 0, 0
        return directories[index].VirtualAddress, directories[index].Size

    def _span(self, rva: int) -> tuple[int, int, int, int] | None:
        last = self._last
        if last[0] <= rva < last[1]:
            return last
        for span in self._spans:
            if span[0] <= rva < span[1]:
                self._last = span
                return span
        return None

    def offset(self, rva: int) -> int | None:
        """File offset of an RVA, or None where no bytes of the file are mapped."""
        span = self._span(rva)
        if span is None:
            return None
        offset = span[2] + rva - span[0]
        return offset if offset < span[3] else None

    def read(self, rva: int, count: int) -> bytes:
        """Up to ``count`` bytes at an RVA: fewer at the end of what the file holds, none outside of it."""
        span = self._span(rva)
        if span is None or count <= 0:
            return b""
        offset = span[2] + rva - span[0]
        return self.data[offset : min(offset + count, span[3], offset + HEADER_SLICE)]

    def text(self, rva: int, limit: int | None = None) -> str | None:
        """The zero-terminated name at an RVA, or None where there is none within the limit."""
        at = self._text(rva, limit)
        return at[1] if at else None

    def hint_and_name(self, rva: int) -> tuple[int, str] | None:
        """A number of two bytes and the name that follows it, or None where there is none within the limits."""
        at = self._text(rva + 2, None)
        if at is None:
            return None
        start = at[0] - 2
        return int.from_bytes(self.data[start : start + 2], "little"), at[1]

    def _text(self, rva: int, limit: int | None) -> tuple[int, str] | None:
        span = self._span(rva)
        if span is None:
            return None
        offset = span[2] + rva - span[0]
        limit = self.limits.name_length if limit is None else limit
        if offset >= span[3]:
            return None
        end = self.data.find(b"\0", offset, min(offset + limit + 1, span[3]))
        if end < 0:
            return None
        self.names_left -= end - offset
        if self.names_left < 0:
            return None
        return offset, self.data[offset:end].decode("utf-8", "backslashreplace")

    def words(self, rva: int, count: int, width: int) -> tuple[int, ...]:
        """Up to ``count`` unsigned little-endian numbers of 2, 4 or 8 bytes at an RVA."""
        raw = self.read(rva, count * width)
        have = len(raw) // width
        return struct.unpack(f"<{have}{ {2: 'H', 4: 'I', 8: 'Q'}[width] }", raw[: have * width])


def not_pe(path: Path, why: str) -> InputError:
    """The error for a file that is no PE file."""
    return InputError(f"{shown(path.name)} is not a Windows program: {why}")


@contextmanager
def open_image(path: Path, limits: Limits) -> Iterator[Image]:
    """The mapped file; raises InputError when it cannot be read or is not a PE file."""
    with open_mapping(path) as data:
        if data[:2] != b"MZ":
            raise not_pe(path, "it does not begin with the letters MZ")
        import pefile

        try:
            # Not closed: it holds no file, and the close of pefile 2024.8 collects all garbage, 17 ms a file.
            window: Any = _Window(data)
            pe = pefile.PE(data=window, fast_load=True)
        except pefile.PEFormatError as error:
            raise not_pe(path, str(error).strip("'").rstrip(".").lower()) from None
        except (struct.error, ValueError, TypeError, AttributeError, IndexError):
            raise not_pe(path, "its header is damaged") from None
        if pe.OPTIONAL_HEADER.Magic not in (0x10B, 0x20B):
            raise not_pe(path, "its optional header is of no known kind")
        name = path.name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
        yield Image(name, data, pe, limits)


@contextmanager
def open_mapping(path: Path) -> Iterator[mmap.mmap]:
    """The file's bytes as a read-only mapping; raises InputError when there is no regular file with bytes to read."""
    try:
        # Without O_NONBLOCK a pipe that carries the name of a program would be waited for.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError) as error:
        if path.is_dir():
            raise InputError(f"{shown(path.name)} is a folder, not a file") from None
        why = getattr(error, "strerror", None) or str(error)
        raise InputError(f"{shown(path.name)} cannot be read: {why}") from None
    try:
        state = os.fstat(descriptor)
        if stat.S_ISDIR(state.st_mode):
            raise InputError(f"{shown(path.name)} is a folder, not a file")
        if not stat.S_ISREG(state.st_mode):
            raise InputError(f"{shown(path.name)} is not a regular file")
        if not state.st_size:
            raise not_pe(path, "it is empty")
        try:
            data = mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ)
        except (OSError, ValueError, OverflowError) as error:
            raise InputError(f"{shown(path.name)} cannot be read: {error}") from None
    finally:
        os.close(descriptor)
    with data:
        yield data
