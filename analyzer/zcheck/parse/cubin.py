"""Cubins: architecture and kernel names from the ELF header and symbol table. No disassembly; bounded; never raises.

Kernels are function symbols whose ``st_other`` carries STO_CUDA_ENTRY (0x10), as readelf and cuobjdump show them.
"""

from __future__ import annotations

import struct

from zcheck.model.base import DEFAULT_LIMITS, Limits, Record

EM_CUDA = 190
STO_CUDA_ENTRY = 0x10
STT_FUNC = 2
SHT_SYMTAB = 2


class Cubin(Record, frozen=True):
    """``arch`` as ``sm_90``; ``kernels`` in the order of the symbol table; ``problem`` says what was not read."""

    arch: str = ""
    kernels: tuple[str, ...] = ()
    code: tuple[int, ...] = ()
    """bytes of machine code of each kernel"""
    problem: str | None = None


def read_cubin(data: bytes, limits: Limits = DEFAULT_LIMITS) -> Cubin:
    """Facts of one cubin."""
    if data[:4] != b"\x7fELF":
        return Cubin(problem="is no ELF file")
    if len(data) < 64 or data[4] != 2 or data[5] != 1:
        return Cubin(problem="is no 64-bit little-endian ELF file")
    (machine,) = struct.unpack_from("<H", data, 18)
    if machine != EM_CUDA:
        return Cubin(problem=f"is an ELF file for machine {machine}, not CUDA")
    table, flags = struct.unpack_from("<Q", data, 40)[0], struct.unpack_from("<I", data, 48)[0]
    width, count = struct.unpack_from("<HH", data, 58)
    # ELF ABI version 8 (CUDA 13) moved the architecture up one byte.
    sm = (flags >> 8) & 0xFF if data[8] >= 8 else flags & 0xFF
    arch = f"sm_{sm}" if sm else ""
    if width < 64 or table + width * count > len(data):
        return Cubin(arch, problem="its section table lies past the end")
    kernels: dict[str, int] = {}
    for row in range(count):
        at = table + row * width
        (kind,) = struct.unpack_from("<I", data, at + 4)
        if kind != SHT_SYMTAB:
            continue
        offset, size, link = struct.unpack_from("<QQI", data, at + 24)
        if offset + size > len(data) or link >= count:
            return Cubin(arch, tuple(kernels), tuple(kernels.values()), "its symbol table lies past the end")
        text_at, text_size = struct.unpack_from("<QQ", data, table + link * width + 24)
        if text_at + text_size > len(data):
            return Cubin(arch, tuple(kernels), tuple(kernels.values()), "its string table lies past the end")
        symbols = min(size // 24, limits.symbols)
        for name, info, other, length in struct.iter_unpack("<IBB10xQ", data[offset : offset + symbols * 24]):
            if info & 15 == STT_FUNC and other & STO_CUDA_ENTRY and name < text_size:
                end = data.find(b"\0", text_at + name, text_at + min(text_size, name + limits.name_length))
                if end > 0:
                    kernels[data[text_at + name : end].decode("utf-8", "replace")] = length
    return Cubin(arch, tuple(kernels), tuple(kernels.values()))
