"""Makes small PE files for tests, with every table placed by hand: what a linker would not write can be tested too.

``build(imports={"a.dll": ["f", 7]}, exports=["g"])`` is the bytes of a program. A test holds these files against LIEF
and llvm-readobj, so that the reader is not measured by its own misunderstandings. Relocations and code are missing:
nothing made here is meant to run.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence

MACHINES = {"x64": 0x8664, "x86": 0x014C, "arm64": 0xAA64}
BASE_RVA = 0x1000
FILE_ALIGNMENT = 0x200
Names = Mapping[str, Sequence[str | int]]


class _Section:
    """Bytes at a known RVA."""

    def __init__(self, rva: int) -> None:
        self.rva = rva
        self.data = bytearray()

    def put(self, raw: bytes, align: int = 4) -> int:
        """Appends bytes and returns their RVA."""
        self.data.extend(b"\0" * (-len(self.data) % align))
        at = self.rva + len(self.data)
        self.data.extend(raw)
        return at


def build(
    *,
    machine: str = "x64",
    dll: bool = False,
    imports: Names | None = None,
    delay: Names | None = None,
    delay_by_rva: bool = True,
    exports: Sequence[str | tuple[str | None, str | None]] = (),
    export_name: str = "",
    ordinal_base: int = 1,
    version: Mapping[str, Mapping[str, str]] | None = None,
    fixed: tuple[int, int, int, int] = (0, 0, 0, 0),
    manifest: bytes = b"",
    clr_flags: int | None = None,
    bound: bool = False,
    sections: Sequence[tuple[str, bytes, bool]] = (),
    overlay: bytes = b"",
    image_base: int | None = None,
) -> bytes:
    """A PE file.

    ``imports`` and ``delay``: DLL → names or ordinals. ``exports``: names, or (name or None, forwarder or None).
    ``version``: language block such as ``040904b0`` → strings. ``sections``: name, bytes, executable.
    """
    wide = machine != "x86"
    base = image_base if image_base is not None else (0x1_4000_0000 if wide else 0x40_0000)
    tables = _Section(BASE_RVA)
    directories = [(0, 0)] * 16
    if exports:
        directories[0] = _exports(tables, exports, export_name, ordinal_base)
    if imports:
        directories[1] = _imports(tables, imports, wide, bound)
    if version or manifest or any(fixed):
        directories[2] = _resources(tables, version or {}, fixed, manifest)
    if delay:
        directories[13] = _delay(tables, delay, wide, 0 if delay_by_rva else base)
    if clr_flags is not None:
        header = struct.pack("<IHHIIII", 72, 2, 5, 0, 0, clr_flags, 0) + bytes(44)
        directories[14] = (tables.put(header), 72)
    parts = [(".rdata", bytes(tables.data), 0x4000_0040)]
    parts += [(name, raw, 0x6000_0020 if code else 0x4000_0040) for name, raw, code in sections]
    return _file(machine, dll, wide, base, directories, parts) + overlay


def _thunks(tables: _Section, names: Sequence[str | int], wide: bool, base: int = 0) -> int:
    flag = 1 << 63 if wide else 1 << 31
    values = []
    for hint, name in enumerate(names):
        if isinstance(name, int):
            values.append(flag | name)
        else:
            values.append(base + tables.put(struct.pack("<H", hint & 0xFFFF) + name.encode() + b"\0", 2))
    values.append(0)
    return tables.put(struct.pack(f"<{len(values)}{'Q' if wide else 'I'}", *values), 8)


def _imports(tables: _Section, imports: Names, wide: bool, bound: bool) -> tuple[int, int]:
    rows = []
    for dll, names in imports.items():
        lookup = _thunks(tables, names, wide)
        addresses = _thunks(tables, names, wide)
        rows.append(
            struct.pack("<5I", lookup, 0xFFFF_FFFF if bound else 0, 0, tables.put(dll.encode() + b"\0"), addresses)
        )
    raw = b"".join(rows) + bytes(20)
    return tables.put(raw), len(raw)


def _delay(tables: _Section, delay: Names, wide: bool, base: int) -> tuple[int, int]:
    rows = []
    for dll, names in delay.items():
        fields = [
            tables.put(dll.encode() + b"\0"),
            tables.put(bytes(8), 8),
            _thunks(tables, [1] * len(names), wide),
            _thunks(tables, names, wide, base),
        ]
        rows.append(struct.pack("<8I", 0 if base else 1, *((base + rva) & 0xFFFF_FFFF for rva in fields), 0, 0, 0))
    raw = b"".join(rows) + bytes(32)
    return tables.put(raw), len(raw)


def _exports(
    tables: _Section, exports: Sequence[str | tuple[str | None, str | None]], own: str, ordinal_base: int
) -> tuple[int, int]:
    rows = [(item, None) if isinstance(item, str) else item for item in exports]
    start = tables.put(bytes(40))
    addresses = []
    for _, forwarder in rows:
        addresses.append(tables.put(forwarder.encode() + b"\0", 1) if forwarder else BASE_RVA - 0x800)
    # The loader searches names by bisection, so the table is in order of the bytes.
    named = sorted((name.encode(), index) for index, (name, _) in enumerate(rows) if name is not None)
    name_rvas = [tables.put(name + b"\0", 1) for name, _ in named]
    own_rva = tables.put(own.encode() + b"\0", 1)
    functions = tables.put(struct.pack(f"<{len(rows)}I", *addresses))
    names = tables.put(struct.pack(f"<{len(named)}I", *name_rvas))
    ordinals = tables.put(struct.pack(f"<{len(named)}H", *(index for _, index in named)))
    header = struct.pack(
        "<IIHHIIIIIII", 0, 0, 0, 0, own_rva, ordinal_base, len(rows), len(named), functions, names, ordinals
    )
    at = start - tables.rva
    tables.data[at : at + 40] = header
    return start, tables.rva + len(tables.data) - start


def _node(key: str, value: bytes, text: bool, children: bytes = b"") -> bytes:
    head = key.encode("utf-16-le") + b"\0\0"
    head += b"\0" * (-(6 + len(head)) % 4)
    body = head + value
    if children:
        body += b"\0" * (-(6 + len(body)) % 4) + children
    return struct.pack("<HHH", 6 + len(body), len(value) // 2 if text else len(value), int(text)) + body


def _padded(nodes: Sequence[bytes]) -> bytes:
    return b"".join(node + b"\0" * (-len(node) % 4) for node in nodes)


def version_block(version: Mapping[str, Mapping[str, str]], fixed: tuple[int, int, int, int]) -> bytes:
    """A VS_VERSIONINFO block."""
    tables = [
        _node(
            language,
            b"",
            True,
            _padded([_node(key, (text + "\0").encode("utf-16-le"), True) for key, text in strings.items()]),
        )
        for language, strings in version.items()
    ]
    info = _node("StringFileInfo", b"", True, _padded(tables)) if tables else b""
    numbers = struct.pack("<13I", 0xFEEF04BD, 0x10000, fixed[0] << 16 | fixed[1], fixed[2] << 16 | fixed[3], *([0] * 9))
    return _node("VS_VERSION_INFO", numbers, False, info)


def _resources(
    tables: _Section, version: Mapping[str, Mapping[str, str]], fixed: tuple[int, int, int, int], manifest: bytes
) -> tuple[int, int]:
    leaves = []
    if version or any(fixed):
        leaves.append((16, version_block(version, fixed)))
    if manifest:
        leaves.append((24, manifest))
    start = tables.put(bytes(16 + 8 * len(leaves) + len(leaves) * (24 + 24 + 16)), 16)
    raw = bytearray(struct.pack("<IIHHHH", 0, 0, 0, 0, 0, len(leaves)))
    at = 16 + 8 * len(leaves)
    for index, (kind, _) in enumerate(leaves):
        raw += struct.pack("<II", kind, 0x8000_0000 | (at + index * 64))
    for index, (_, data) in enumerate(leaves):
        here = at + index * 64
        raw += struct.pack("<IIHHHHII", 0, 0, 0, 0, 0, 1, 1, 0x8000_0000 | (here + 24))
        raw += struct.pack("<IIHHHHII", 0, 0, 0, 0, 0, 1, 0x409, here + 48)
        raw += struct.pack("<IIII", tables.put(data), len(data), 0, 0)
    tables.data[start - tables.rva : start - tables.rva + len(raw)] = raw
    return start, tables.rva + len(tables.data) - start


def _file(
    machine: str,
    dll: bool,
    wide: bool,
    base: int,
    directories: Sequence[tuple[int, int]],
    parts: Sequence[tuple[str, bytes, int]],
) -> bytes:
    optional_size = (112 if wide else 96) + 128
    headers_end = 64 + 4 + 20 + optional_size + 40 * len(parts)
    headers_size = -(-headers_end // FILE_ALIGNMENT) * FILE_ALIGNMENT
    offset, rva = headers_size, BASE_RVA
    table, body = b"", b""
    for name, raw, flags in parts:
        size = -(-len(raw) // FILE_ALIGNMENT) * FILE_ALIGNMENT
        table += struct.pack("<8sIIIIIIHHI", name.encode(), len(raw), rva, size, offset, 0, 0, 0, 0, flags)
        body += raw + b"\0" * (size - len(raw))
        offset += size
        rva += -(-max(len(raw), 1) // 0x1000) * 0x1000
    flags = 0x2022 if dll else 0x22
    coff = struct.pack("<HHIIIHH", MACHINES[machine], len(parts), 0, 0, 0, optional_size, flags)
    optional = struct.pack("<HBBIIIII", 0x20B if wide else 0x10B, 14, 0, 0, 0, 0, 0, BASE_RVA)
    optional += struct.pack("<Q", base) if wide else struct.pack("<II", BASE_RVA, base)
    optional += struct.pack("<IIHHHHHHIIIIHH", 0x1000, FILE_ALIGNMENT, 6, 0, 0, 0, 6, 0, 0, rva, headers_size, 0, 3, 0)
    optional += struct.pack("<QQQQ" if wide else "<IIII", 0x100000, 0x1000, 0x100000, 0x1000) + struct.pack(
        "<II", 0, 16
    )
    optional += b"".join(struct.pack("<II", *entry) for entry in directories)
    assert len(optional) == optional_size
    dos = b"MZ" + bytes(58) + struct.pack("<I", 64)
    head = dos + b"PE\0\0" + coff + optional + table
    return head + bytes(headers_size - len(head)) + body
