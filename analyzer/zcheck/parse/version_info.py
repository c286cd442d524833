"""The version resource. Source: Microsoft, "VS_VERSIONINFO structure" and "String structure" (verrsrc.h)."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from zcheck.model.facts import VersionInfo

MAX_BYTES = 1 << 20
"""bytes of one version resource that are read; real ones have a few kilobytes"""
_NODES = 4096
_FIELDS = {
    "CompanyName": "company",
    "ProductName": "product",
    "FileDescription": "description",
    "OriginalFilename": "original_name",
    "FileVersion": "file_version",
    "ProductVersion": "product_version",
}
_ENGLISH = ("0409", "0809", "0000")


def read_version(blocks: list[bytes]) -> VersionInfo | None:
    """The strings of all version resources of one file (one a language): English first, gaps filled from the others.

    ``fixed_version`` comes from the binary part, which Windows itself compares. None when nothing could be read.
    """
    tables: list[tuple[str, dict[str, str]]] = []
    fixed = ""
    for block in blocks:
        for number, own_tables in _root(block[:MAX_BYTES]):
            fixed = fixed or number
            tables.extend(own_tables)
    if not tables and not fixed:
        return None
    tables.sort(key=lambda table: _ENGLISH.index(table[0][:4]) if table[0][:4] in _ENGLISH else len(_ENGLISH))
    values: dict[str, str] = {}
    for _, strings in tables:
        for key, field in _FIELDS.items():
            if strings.get(key):
                values.setdefault(field, strings[key])
    return VersionInfo(fixed_version=fixed, **values)


def _root(block: bytes) -> Iterator[tuple[str, list[tuple[str, dict[str, str]]]]]:
    budget = [_NODES]
    for key, value, children in _nodes(block, 0, len(block), budget):
        if key != "VS_VERSION_INFO":
            continue
        fixed = ""
        if len(value) >= 16 and value[:4] == b"\xbd\x04\xef\xfe":
            high, low = struct.unpack_from("<II", value, 8)
            fixed = f"{high >> 16}.{high & 0xFFFF}.{low >> 16}.{low & 0xFFFF}"
        tables: list[tuple[str, dict[str, str]]] = []
        for name, _, inner in _nodes(block, *children, budget):
            if name != "StringFileInfo":
                continue
            for language, _, strings in _nodes(block, *inner, budget):
                texts: dict[str, str] = {}
                for text_key, _, (start, end) in _nodes(block, *strings, budget, leaf=True):
                    texts.setdefault(text_key, _text(block[start:end]))
                tables.append((language.lower(), texts))
        yield fixed, tables
        return


def _nodes(
    block: bytes, at: int, end: int, budget: list[int], leaf: bool = False
) -> Iterator[tuple[str, bytes, tuple[int, int]]]:
    """Key, value and the range of children (for a leaf: of the value) of each node in a range."""
    end = min(end, len(block))
    while at + 6 <= end and budget[0] > 0:
        budget[0] -= 1
        length, value_length, kind = struct.unpack_from("<HHH", block, at)
        if length < 6:
            return
        stop = min(at + length, end)
        key_end = at + 6
        while key_end + 2 <= stop and block[key_end : key_end + 2] != b"\0\0":
            key_end += 2
        key = block[at + 6 : key_end].decode("utf-16-le", "replace")
        value_at = -(-(key_end + 2) // 4) * 4
        if leaf:
            # Some compilers count the value in bytes, some in characters: the node's own length is the sure bound.
            yield key, b"", (value_at, stop)
        else:
            size = value_length * 2 if kind == 1 else value_length
            value_end = min(value_at + size, stop)
            yield key, block[value_at:value_end], (-(-value_end // 4) * 4, stop)
        at = -(-(at + length) // 4) * 4


def _text(raw: bytes) -> str:
    text = raw[: len(raw) & ~1].decode("utf-16-le", "replace")
    return text.split("\0", 1)[0].strip()
