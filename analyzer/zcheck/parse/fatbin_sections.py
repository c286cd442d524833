"""Where things lie in a PE or ELF file: section names for places, addresses for pointers. Bounded, never raises.

Only the section table is read (pefile and LIEF map or copy the whole file, and device code sits in files of 1.8 GB).
Source: Microsoft, "PE Format" (COFF header, optional header, section table).
"""

from __future__ import annotations

import struct
from bisect import bisect_right
from collections.abc import Callable

from zcheck.model.base import Record
from zcheck.model.device_code import FileForm

MAX_SECTIONS = 128
"""more than the 96 that Windows loads"""
Read = Callable[[int, int], bytes]
"""(offset, size) → at most so many bytes"""


class Span(Record, frozen=True):
    """A section: raw offset and size in the file, virtual address (image base included) and virtual size."""

    name: str
    offset: int
    size: int
    address: int
    virtual_size: int


class Layout(Record, frozen=True):
    """Form of the file and its sections, sorted by offset. ``pointer`` is the size of an address in bytes."""

    form: FileForm = "other"
    spans: tuple[Span, ...] = ()
    pointer: int = 8

    def section(self, offset: int) -> str:
        """Name of the section that holds the offset; empty outside all sections."""
        at = bisect_right(self.spans, offset, key=lambda span: span.offset) - 1
        if at >= 0 and offset < self.spans[at].offset + self.spans[at].size:
            return self.spans[at].name
        return ""

    def offset(self, address: int) -> int | None:
        """File offset of a virtual address; None outside all sections."""
        for span in self.spans:
            if span.address <= address < span.address + max(span.size, span.virtual_size):
                inside = address - span.address
                return span.offset + inside if inside < span.size else None
        return None


def read_layout(read: Read, size: int) -> Layout:
    """The layout of the file that ``read`` gives bytes of; an unknown form has no sections."""
    head = read(0, 4096)
    if head[:2] == b"MZ" and len(head) >= 64:
        return _pe(read, size, head)
    if head[:4] == b"\x7fELF":
        return Layout("cubin" if len(head) >= 20 and head[18:20] == b"\xbe\x00" else "elf")
    if head[:4] == b"\x50\xed\x55\xba":
        return Layout("fatbin")
    return Layout("ptx" if looks_like_ptx(head) else "other")


def looks_like_ptx(head: bytes) -> bool:
    """True when the beginning of a file is PTX text: ``.version`` comes before anything but comments."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    while text[:2] in (b"//", b"/*"):
        end, tail = (text.find(b"\n"), 1) if text[:2] == b"//" else (text.find(b"*/"), 2)
        if end < 0:
            # A comment longer than the sample: the directives may still follow.
            return True
        text = text[end + tail :].lstrip()
    return text.startswith(b".version")


def _pe(read: Read, size: int, head: bytes) -> Layout:
    (at,) = struct.unpack_from("<I", head, 0x3C)
    coff = read(at, 24 + 112)
    if len(coff) < 24 + 32 or coff[:4] != b"PE\0\0":
        return Layout("other")
    count, optional = struct.unpack_from("<H12xH", coff, 6)
    plus = coff[24:26] == b"\x0b\x02"
    (base,) = struct.unpack_from("<Q" if plus else "<I", coff, 24 + (24 if plus else 28))
    count = min(count, MAX_SECTIONS)
    table = read(at + 24 + optional, count * 40)
    spans = []
    for row in range(len(table) // 40):
        name, virtual_size, address, raw_size, raw = struct.unpack_from("<8sIIII", table, row * 40)
        if raw < size:
            text = name.rstrip(b"\0").decode("latin-1")
            spans.append(Span(text, raw, min(raw_size, size - raw), base + address, virtual_size))
    spans.sort(key=lambda span: (span.offset, span.size))
    return Layout("pe", tuple(spans), 8 if plus else 4)
