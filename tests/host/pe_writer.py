"""A tiny PE writer for test data: a DLL or EXE with the imports, delay imports, exports and version strings asked for.

The files are well-formed by Microsoft's PE format (checked in test_host_pe_writer against LIEF), and Windows' loader is
never asked to run them.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

_BASE = 0x180000000
_SECTION = 0x1000
_MACHINES = {"x64": 0x8664, "x86": 0x14C, "arm64": 0xAA64}


class _Blob:
    """Bytes that will lie at one RVA; strings are placed once."""

    def __init__(self, rva: int) -> None:
        self.rva = rva
        self.data = bytearray()

    def put(self, data: bytes, align: int = 1) -> int:
        while len(self.data) % align:
            self.data.append(0)
        at = self.rva + len(self.data)
        self.data += data
        return at

    def string(self, text: str) -> int:
        return self.put(text.encode("ascii") + b"\0")

    def patch(self, rva: int, data: bytes) -> None:
        self.data[rva - self.rva : rva - self.rva + len(data)] = data


def _thunks(blob: _Blob, functions: Sequence[str], base: int, wide: bool) -> tuple[int, int]:
    """Name table and address table of one DLL; entries are RVAs of hint and name."""
    size = 8 if wide else 4
    names = [blob.put(b"\0\0" + name.encode("ascii") + b"\0", 2) for name in functions]
    packed = b"".join(name.to_bytes(size, "little") for name in names) + bytes(size)
    addresses = b"".join((base + name).to_bytes(size, "little") for name in names) + bytes(size)
    return blob.put(packed, 8), blob.put(packed if base == 0 else addresses, 8)


def _imports(blob: _Blob, imports: Mapping[str, Sequence[str]], wide: bool) -> tuple[int, int]:
    rows = []
    for dll, functions in imports.items():
        names, addresses = _thunks(blob, functions, 0, wide)
        rows.append(struct.pack("<IIIII", names, 0, 0, blob.string(dll), addresses))
    data = b"".join(rows) + bytes(20)
    return blob.put(data, 4), len(data)


def _delays(blob: _Blob, imports: Mapping[str, Sequence[str]], wide: bool) -> tuple[int, int]:
    rows = []
    for dll, functions in imports.items():
        names, addresses = _thunks(blob, functions, _BASE if wide else 0x10000000, wide)
        handle = blob.put(bytes(8), 8)
        rows.append(struct.pack("<IIIIIIII", 1, blob.string(dll), handle, addresses, names, 0, 0, 0))
    data = b"".join(rows) + bytes(32)
    return blob.put(data, 4), len(data)


def _exports(blob: _Blob, dll: str, names: Sequence[str]) -> tuple[int, int]:
    start = blob.put(bytes(40), 4)
    ordered = sorted(names)
    body = blob.put(b"\xc3")
    functions = blob.put(struct.pack(f"<{len(ordered)}I", *([body] * len(ordered))), 4)
    pointers = [blob.string(name) for name in ordered]
    table = blob.put(struct.pack(f"<{len(ordered)}I", *pointers), 4)
    ordinals = blob.put(struct.pack(f"<{len(ordered)}H", *range(len(ordered))), 2)
    name = blob.string(dll)
    blob.patch(
        start, struct.pack("<IIHHIIIIIII", 0, 0, 0, 0, name, 1, len(ordered), len(ordered), functions, table, ordinals)
    )
    return start, blob.rva + len(blob.data) - start


def _block(key: str, value: bytes, kind: int, children: bytes = b"") -> bytes:
    """One node of a version resource: length, value length, type, key, value, children, each on a 4-byte border."""
    head = key.encode("utf-16-le") + b"\0\0"
    head += bytes(-(6 + len(head)) % 4)
    body = head + value
    if children:
        body += bytes(-(6 + len(body)) % 4) + children
    count = len(value) // 2 if kind else len(value)
    return struct.pack("<HHH", 6 + len(body), count, kind) + body


def _version(strings: Mapping[str, str]) -> bytes:
    numbers = [int(part) for part in (strings.get("FileVersion") or "0").split(".") if part.isdigit()][:4]
    numbers += [0] * (4 - len(numbers))
    high, low = numbers[0] << 16 | numbers[1], numbers[2] << 16 | numbers[3]
    fixed = struct.pack("<13I", 0xFEEF04BD, 0x10000, high, low, high, low, 0x3F, 0, 0x40004, 2, 0, 0, 0)
    rows = b""
    for name, text in strings.items():
        row = _block(name, text.encode("utf-16-le") + b"\0\0", 1)
        rows += row + bytes(-len(row) % 4)
    info = _block("StringFileInfo", b"", 1, _block("040904b0", b"", 1, rows))
    return _block("VS_VERSION_INFO", fixed, 0, info)


def _resources(blob: _Blob, strings: Mapping[str, str]) -> tuple[int, int]:
    start = blob.put(b"", 4)
    version = _version(strings)
    levels = b""
    for level, identity in enumerate((16, 1, 0x409)):  # RT_VERSION, resource 1, US English
        target = (level + 1) * 24
        flag = 0x80000000 if level < 2 else 0
        levels += struct.pack("<IIHHHHII", 0, 0, 0, 0, 0, 1, identity, flag | target)
    entry = struct.pack("<IIII", start + 72 + 16, len(version), 0, 0)
    blob.put(levels + entry + version)
    return start, 72 + 16 + len(version)


def write_pe(
    name: str,
    *,
    imports: Mapping[str, Sequence[str]] | None = None,
    delay_imports: Mapping[str, Sequence[str]] | None = None,
    exports: Sequence[str] = (),
    version: Mapping[str, str] | None = None,
    machine: str = "x64",
    data: bytes = b"",
) -> bytes:
    """The bytes of a PE file called ``name``; ``data`` is put into its .rdata as it is."""
    wide = machine != "x86"
    blob = _Blob(_SECTION)
    directories = [(0, 0)] * 16
    if exports:
        directories[0] = _exports(blob, name, exports)
    if imports:
        directories[1] = _imports(blob, imports, wide)
    if version:
        directories[2] = _resources(blob, version)
    if delay_imports:
        directories[13] = _delays(blob, delay_imports, wide)
    if data:
        blob.put(data)
    if not blob.data:
        blob.put(b"\xc3")
    raw = bytes(blob.data) + bytes(-len(blob.data) % 0x200)
    is_dll = name.lower().endswith(".dll")
    optional_size = 240 if wide else 224
    dos = b"MZ" + bytes(58) + struct.pack("<I", 64)
    flags = (0x2022 if is_dll else 0x22) if wide else (0x2102 if is_dll else 0x102)
    coff = b"PE\0\0" + struct.pack("<HHIIIHH", _MACHINES[machine], 1, 0, 0, 0, optional_size, flags)
    virtual = -(-len(blob.data) // 0x1000) * 0x1000
    if wide:
        optional = struct.pack("<HBBIIIII", 0x20B, 14, 0, 0, len(raw), 0, 0, _SECTION) + struct.pack("<Q", _BASE)
    else:
        optional = struct.pack("<HBBIIIIII", 0x10B, 14, 0, 0, len(raw), 0, 0, _SECTION, 0) + struct.pack(
            "<I", 0x10000000
        )
    optional += struct.pack("<IIHHHHHHIIIIHH", 0x1000, 0x200, 6, 0, 0, 0, 6, 0, 0, _SECTION + virtual, 0x200, 0, 3, 0)
    optional += struct.pack("<QQQQ" if wide else "<IIII", 0x100000, 0x1000, 0x100000, 0x1000) + struct.pack(
        "<II", 0, 16
    )
    optional += b"".join(struct.pack("<II", *directory) for directory in directories)
    assert len(optional) == optional_size
    section = struct.pack("<8sIIIIIIHHI", b".rdata", len(blob.data), _SECTION, len(raw), 0x200, 0, 0, 0, 0, 0x60000040)
    head = dos + coff + optional + section
    assert len(head) <= 0x200
    return head + bytes(0x200 - len(head)) + raw
