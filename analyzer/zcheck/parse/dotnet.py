"""P/Invoke imports and string literals of a .NET assembly, from its metadata (ECMA-335 6th edition, partition II, 22 to
25).

Written by hand, for dnfile (the library for it) takes the whole file through pefile first and is an addition to pull in
for three tables. Every offset and count is bounded by the metadata's own size; odd metadata gives Problems.
"""

from __future__ import annotations

import bisect
import re
import struct
from typing import BinaryIO, NamedTuple

from zcheck.model.base import Limits, Problem
from zcheck.model.facts import PeFacts
from zcheck.model.hidden import PInvoke

_INTERESTING = re.compile(r"(?i)cu|nv|\.dll|\.exe|npp|nccl|64_")
_LOADING = re.compile(r"Load(?:Library(?:Ex)?[AW]?|PackagedLibrary)|GetProcAddress|LdrLoadDll|dlopen|dlsym")
_NATIVE_LIBRARY = frozenset({"Load", "TryLoad", "GetExport", "TryGetExport", "GetMainProgramHandle"})
_LARGEST = 256 * 1024 * 1024

# Columns of tables 0x00 to 0x1C (II.22): "2" and "4" are bytes; s, g, b are heap indices; a table number is a row
# index; a name is a coded index.
_SCHEMAS: dict[int, tuple[int | str, ...]] = {
    0x00: ("2", "s", "g", "g", "g"),
    0x01: ("ResolutionScope", "s", "s"),
    0x02: ("4", "s", "s", "TypeDefOrRef", 0x04, 0x06),
    0x03: (0x04,),
    0x04: ("2", "s", "b"),
    0x05: (0x06,),
    0x06: ("4", "2", "2", "s", "b", 0x08),
    0x07: (0x08,),
    0x08: ("2", "2", "s"),
    0x09: (0x02, "TypeDefOrRef"),
    0x0A: ("MemberRefParent", "s", "b"),
    0x0B: ("2", "HasConstant", "b"),
    0x0C: ("HasCustomAttribute", "CustomAttributeType", "b"),
    0x0D: ("HasFieldMarshal", "b"),
    0x0E: ("2", "HasDeclSecurity", "b"),
    0x0F: ("2", "4", 0x02),
    0x10: ("4", 0x04),
    0x11: ("b",),
    0x12: (0x02, 0x14),
    0x13: (0x14,),
    0x14: ("2", "s", "TypeDefOrRef"),
    0x15: (0x02, 0x17),
    0x16: (0x17,),
    0x17: ("2", "s", "b"),
    0x18: ("2", 0x06, "HasSemantics"),
    0x19: (0x02, "MethodDefOrRef", "MethodDefOrRef"),
    0x1A: ("s",),
    0x1B: ("b",),
    0x1C: ("2", "MemberForwarded", "s", 0x1A),
}
# Coded indices: bits of the tag, tables (II.24.2.6).
_CODED: dict[str, tuple[int, tuple[int, ...]]] = {
    "ResolutionScope": (2, (0x00, 0x1A, 0x23, 0x01)),
    "TypeDefOrRef": (2, (0x02, 0x01, 0x1B)),
    "MemberRefParent": (3, (0x02, 0x01, 0x1A, 0x06, 0x1B)),
    "HasConstant": (2, (0x04, 0x08, 0x17)),
    "HasCustomAttribute": (
        5,
        (0x06, 0x04, 0x01, 0x02, 0x08, 0x09, 0x0A, 0x00, 0x0E, 0x17, 0x14, 0x11, 0x1A, 0x1B, 0x20, 0x23, 0x26, 0x27,
         0x28, 0x2A, 0x2C, 0x2B),
    ),
    "CustomAttributeType": (3, (0x06, 0x0A)),
    "HasFieldMarshal": (1, (0x04, 0x08)),
    "HasDeclSecurity": (2, (0x02, 0x06, 0x20)),
    "HasSemantics": (1, (0x14, 0x17)),
    "MethodDefOrRef": (1, (0x06, 0x0A)),
    "MemberForwarded": (1, (0x04, 0x06)),
}  # fmt: skip


class Managed(NamedTuple):
    """What the metadata says. ``metadata`` is its (start, end) in the file; ``user_strings`` are (file offset, text) of
    literals that could name a DLL or function; ``loads`` are NativeLibrary functions that the assembly refers to."""

    metadata: tuple[int, int] | None
    p_invokes: tuple[PInvoke, ...] = ()
    user_strings: tuple[tuple[int, str], ...] = ()
    loads: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()


class _Odd(Exception):
    """Metadata that contradicts itself; the text says how."""


def read(file: BinaryIO, facts: PeFacts, limits: Limits) -> Managed:
    """Metadata of the assembly in ``file``; an empty result with a Problem when it cannot be read."""
    try:
        return _read(file, facts, limits)
    except (_Odd, struct.error, IndexError, OSError) as error:
        reason = f".NET metadata cannot be read: {error}"
        return Managed(None, problems=(Problem(path=facts.name, reason=reason, partial=True),))


def _read(file: BinaryIO, facts: PeFacts, limits: Limits) -> Managed:
    start, size = _metadata_range(file, facts)
    if not 32 <= size <= _LARGEST:
        raise _Odd(f"its size is {size} bytes")
    file.seek(start)
    data = file.read(size)
    if data[:4] != b"BSJB":
        raise _Odd("it does not begin with BSJB")
    length = struct.unpack_from("<I", data, 12)[0]
    at = 16 + length
    count = struct.unpack_from("<H", data, at + 2)[0]
    at += 4
    streams: dict[str, tuple[int, int]] = {}
    for _ in range(min(count, 16)):
        offset, stream_size = struct.unpack_from("<II", data, at)
        end = data.index(b"\0", at + 8) if b"\0" in data[at + 8 : at + 40] else -1
        if end < 0:
            raise _Odd("a stream has no name")
        streams.setdefault(data[at + 8 : end].decode("latin-1"), (offset, min(stream_size, max(0, size - offset))))
        at = at + 8 + ((end - at - 8) // 4 + 1) * 4
    tables = _Tables(data, streams, limits)
    strings = _user_strings(data, streams.get("#US", (0, 0)), start, limits)
    return Managed((start, start + size), tables.p_invokes(), strings, tables.native_library())


def _metadata_range(file: BinaryIO, facts: PeFacts) -> tuple[int, int]:
    file.seek(0)
    head = file.read(4096)
    pe = struct.unpack_from("<I", head, 0x3C)[0]
    magic = struct.unpack_from("<H", head, pe + 24)[0]
    directories = pe + 24 + (112 if magic == 0x20B else 96)
    rva = struct.unpack_from("<I", head, directories + 14 * 8)[0]
    file.seek(_offset(facts, rva))
    cor = file.read(16)
    metadata_rva, size = struct.unpack_from("<II", cor, 8)
    return _offset(facts, metadata_rva), size


def _offset(facts: PeFacts, rva: int) -> int:
    for section in facts.sections:
        if section.rva <= rva < section.rva + max(section.virtual_size, section.size):
            return section.offset + rva - section.rva
    raise _Odd(f"RVA {rva:#x} lies in no section")


def _user_strings(data: bytes, stream: tuple[int, int], base: int, limits: Limits) -> tuple[tuple[int, str], ...]:
    """String literals (II.24.2.4) that could matter: length-prefixed UTF-16 with one more byte behind."""
    at, end = stream[0] + 1, min(stream[0] + stream[1], len(data))
    found: list[tuple[int, str]] = []
    for _ in range(limits.strings):
        if at >= end:
            break
        first = data[at]
        if first < 0x80:
            size, width = first, 1
        elif first < 0xC0:
            size, width = ((first & 0x3F) << 8) | data[at + 1], 2
        else:
            size, width = int.from_bytes(data[at : at + 4], "big") & 0x1FFFFFFF, 4
        body = at + width
        if 6 <= size <= 4096 and body + size <= end:
            text = data[body : body + size - 1].decode("utf-16-le", "replace")
            if _INTERESTING.search(text):
                found.append((base + body, text))
        at = body + size
    return tuple(found)


class _Tables:
    """The ``#~`` stream: row counts, row sizes and single rows."""

    def __init__(self, data: bytes, streams: dict[str, tuple[int, int]], limits: Limits) -> None:
        self.data, self.limits = data, limits
        self.strings = streams.get("#Strings", (0, 0))
        start, size = streams.get("#~") or streams.get("#-") or (0, 0)
        if size < 24:
            raise _Odd("it has no table stream")
        heaps = data[start + 6]
        self.heap = {"s": 4 if heaps & 1 else 2, "g": 4 if heaps & 2 else 2, "b": 4 if heaps & 4 else 2}
        valid = struct.unpack_from("<Q", data, start + 8)[0]
        at = start + 24
        self.rows: dict[int, int] = {}
        for number in range(64):
            if valid >> number & 1:
                self.rows[number] = struct.unpack_from("<I", data, at)[0]
                at += 4
        if heaps & 0x40:
            at += 4  # extra data of an edit-and-continue stream
        self.starts: dict[int, int] = {}
        self.widths: dict[int, list[int]] = {}
        end = min(start + size, len(data))
        for number, schema in _SCHEMAS.items():
            widths = [self._width(column) for column in schema]
            self.starts[number], self.widths[number] = at, widths
            at += sum(widths) * self.rows.get(number, 0)
            if at > end:
                raise _Odd(f"table {number:#x} is longer than its stream")

    def _width(self, column: int | str) -> int:
        if isinstance(column, int):
            return 4 if self.rows.get(column, 0) >= 1 << 16 else 2
        if column in ("2", "4"):
            return int(column)
        if column in self.heap:
            return self.heap[column]
        bits, tables = _CODED[column]
        return 4 if max(self.rows.get(table, 0) for table in tables) >= 1 << (16 - bits) else 2

    def row(self, table: int, number: int) -> list[int]:
        """Columns of a row (numbers from 1); raises _Odd when there is none."""
        if not 1 <= number <= self.rows.get(table, 0):
            raise _Odd(f"row {number} of table {table:#x} does not exist")
        at = self.starts[table] + (number - 1) * sum(self.widths[table])
        values = []
        for width in self.widths[table]:
            values.append(int.from_bytes(self.data[at : at + width], "little"))
            at += width
        return values

    def text(self, index: int) -> str:
        """A string of the ``#Strings`` heap, cut at the limit for names."""
        start, size = self.strings
        if index >= size:
            return ""
        end = self.data.find(b"\0", start + index, min(start + size, start + index + self.limits.name_length))
        return self.data[start + index : end if end >= 0 else start + index].decode("utf-8", "replace")

    def p_invokes(self) -> tuple[PInvoke, ...]:
        """Rows of ImplMap with the names that they point to, in table order."""
        owners = self._owners()
        found = []
        for number in range(1, min(self.rows.get(0x1C, 0), self.limits.symbols) + 1):
            _, forwarded, name, scope = self.row(0x1C, number)
            dll = self.text(self.row(0x1A, scope)[0]) if scope else ""
            method = ""
            if forwarded & 1 and 1 <= forwarded >> 1 <= self.rows.get(0x06, 0):
                method = self.text(self.row(0x06, forwarded >> 1)[3])
                owner = owners.get(forwarded >> 1, "")
                method = f"{owner}.{method}" if owner else method
            function = self.text(name) or method.rsplit(".", 1)[-1]
            if dll:
                found.append(PInvoke(dll, function, method, bool(_LOADING.fullmatch(function))))
        return tuple(found)

    def _owners(self) -> dict[int, str]:
        """Method row → class name, for methods that ImplMap forwards."""
        wanted = {self.row(0x1C, n)[1] >> 1 for n in range(1, min(self.rows.get(0x1C, 0), self.limits.symbols) + 1)}
        owners: dict[int, str] = {}
        types = self.rows.get(0x02, 0)
        firsts = [self.row(0x02, number)[5] for number in range(1, types + 1)]
        firsts.append(self.rows.get(0x06, 0) + 1)
        for method in wanted:
            number = bisect.bisect_right(firsts, method, 0, types)
            if 1 <= number <= types:
                owners[method] = self.text(self.row(0x02, number)[1])
        return owners

    def native_library(self) -> tuple[str, ...]:
        """Functions of System.Runtime.InteropServices.NativeLibrary that the assembly refers to, sorted."""
        types = {n for n in range(1, self.rows.get(0x01, 0) + 1) if self.text(self.row(0x01, n)[1]) == "NativeLibrary"}
        found = set()
        if types:
            for number in range(1, self.rows.get(0x0A, 0) + 1):
                parent, name, _ = self.row(0x0A, number)
                if parent & 7 == 1 and parent >> 3 in types:
                    text = self.text(name)
                    if text in _NATIVE_LIBRARY:
                        found.add(f"NativeLibrary.{text}")
        return tuple(sorted(found))
