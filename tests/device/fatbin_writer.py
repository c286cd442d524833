"""A small writer of fatbins and of PE files that carry them, for tests: every field can be set, rightly or wrongly."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, field

import lz4.block
import zstandard

CONTAINER = 0xBA55ED50
WRAPPER = 0x466243B1
IMAGE_BASE = 0x180000000


@dataclass
class Entry:
    """One entry; ``payload`` is the uncompressed content. Fields that are None are computed."""

    payload: bytes = b""
    kind: int = 1
    sm: int = 80
    version: tuple[int, int] = (8, 0)
    pack: str = ""
    flags: int = 0x41
    identifier: bytes = b""
    header: int | None = None
    padded: int | None = None
    compressed: int | None = None
    uncompressed: int | None = None
    entry_version: int = 0x0101

    def encode(self) -> bytes:
        data, flags = self.payload, self.flags
        if self.pack == "lz4":
            data, flags = lz4.block.compress(self.payload, store_size=False), flags | 0x2000
        elif self.pack == "zstd":
            data, flags = zstandard.ZstdCompressor().compress(self.payload), flags | 0x8000
        name = self.identifier + b"\0" if self.identifier else b""
        header = self.header if self.header is not None else 64 + (len(name) + 7) // 8 * 8
        padded = self.padded if self.padded is not None else (len(data) + 7) // 8 * 8
        packed = len(data) if self.pack else 0
        head = struct.pack(
            "<HHIQIIHHIIIQQQ",
            self.kind,
            self.entry_version,
            header,
            padded,
            self.compressed if self.compressed is not None else packed,
            0,
            self.version[1],
            self.version[0],
            self.sm,
            64 if name else 0,
            len(self.identifier),
            flags,
            0,
            self.uncompressed if self.uncompressed is not None else (len(self.payload) if self.pack else 0),
        )
        return (head + name).ljust(64 + (len(name) + 7) // 8 * 8, b"\0") + data.ljust((len(data) + 7) // 8 * 8, b"\0")


def container(entries: Iterable[Entry], *, size: int | None = None, version: int = 1, header: int = 16) -> bytes:
    """A container; ``size`` overrides the size of what follows the header."""
    body = b"".join(entry.encode() for entry in entries)
    return struct.pack("<IHHQ", CONTAINER, version, header, len(body) if size is None else size) + body


@dataclass
class Pe:
    """A PE file of sections only; addresses are known once all sections are added."""

    sections: list[tuple[str, bytes]] = field(default_factory=list)

    def add(self, name: str, data: bytes) -> int:
        """Add a section; returns its virtual address (image base included)."""
        address = IMAGE_BASE + 0x1000 * (1 + sum((len(d) + 0xFFF) // 0x1000 for _, d in self.sections))
        self.sections.append((name, data))
        return address

    def encode(self) -> bytes:
        count = len(self.sections)
        optional = struct.pack("<HBBIIIIIQ", 0x20B, 14, 0, 0, 0, 0, 0, 0x1000, IMAGE_BASE).ljust(112, b"\0")
        head = b"MZ".ljust(0x3C, b"\0") + struct.pack("<I", 0x40)
        head += b"PE\0\0" + struct.pack("<HHIIIHH", 0x8664, count, 0, 0, 0, len(optional), 0x2022) + optional
        offset = (len(head) + 40 * count + 0x1FF) // 0x200 * 0x200
        table, body, rva = b"", b"", 0x1000
        for name, data in self.sections:
            raw = (len(data) + 0x1FF) // 0x200 * 0x200
            table += struct.pack(
                "<8sIIIIIIHHI", name.encode()[:8], len(data), rva, raw, offset + len(body), 0, 0, 0, 0, 0
            )
            body += data.ljust(raw, b"\0")
            rva += (len(data) + 0xFFF) // 0x1000 * 0x1000
        return (head + table).ljust(offset, b"\0") + body


def wrapper(address: int, version: int = 1, extra: int = 0) -> bytes:
    return struct.pack("<IIQQ", WRAPPER, version, address, extra)


def ptx(*functions: str, target: str = "sm_80", version: str = "8.0", size: str = ".address_size 64") -> bytes:
    return "\n".join([f".version {version}", f".target {target}", size, *functions, ""]).encode()


def kernel(name: str, *statements: str, head: str = ".visible .entry", tuning: str = "") -> str:
    body = "".join(f"\t{statement};\n" for statement in (*statements, "ret"))
    return f"{head} {name}(\n\t.param .u64 {name}_param_0\n)\n{tuning}{{\n\t.reg .b32 %r<9>;\n{body}\n}}\n"


def cubin(kernels: dict[str, int], sm: int = 80, abi: int = 8) -> bytes:
    """An ELF file with a symbol table naming the kernels with their sizes, and one device function."""
    strings, symbols = b"\0", struct.pack("<IBBHQQ", 0, 0, 0, 0, 0, 0)
    for name, size in {**kernels, "device_function": 64}.items():
        other = 0x10 if name in kernels else 0
        symbols += struct.pack("<IBBHQQ", len(strings), 0x12, other, 1, 0, size)
        strings += name.encode() + b"\0"
    flags = sm << 8 if abi >= 8 else sm
    table = 64 + len(symbols) + len(strings)
    head = struct.pack("<4sBBBBB7x", b"\x7fELF", 2, 1, 1, 0x41, abi)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 190, 1, 0, 0, table, flags, 64, 0, 0, 64, 3, 0)
    sections = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, 0, 0, 0, 0, 0)
    sections += struct.pack("<IIQQQQIIQQ", 0, 2, 0, 0, 64, len(symbols), 2, 1, 8, 24)
    sections += struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, 64 + len(symbols), len(strings), 0, 0, 1, 0)
    return head + symbols + strings + sections
