"""Signs of packers: their section names, and their effect (few imports beside code that looks like noise).

The names are what the packers write: UPX (upx/upx ``src/p_w32pe_i386.cpp``), the others as listed in Detect It Easy
(horsicq/Detect-It-Easy ``db/PE``).
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

from zcheck.parse.pe_image import Image

_NAMES = {
    "UPX0": "UPX",
    "UPX1": "UPX",
    "UPX!": "UPX",
    ".MPRESS1": "MPRESS",
    ".MPRESS2": "MPRESS",
    ".themida": "Themida",
    ".winlice": "WinLicense",
    ".vmp0": "VMProtect",
    ".vmp1": "VMProtect",
    ".enigma1": "Enigma Protector",
    ".enigma2": "Enigma Protector",
    ".aspack": "ASPack",
    ".petite": "Petite",
    "PEC2": "PECompact",
}
NOISE = 7.2
"""bits per byte from which code counts as compressed or encrypted; plain machine code has 5.5 to 6.8"""
FEW_IMPORTS = 20
"""imported functions up to which a program with noise for code counts as packed: an unpacker needs a handful"""
_SAMPLE = 65_536
_SMALLEST = 4_096


def packer(image: Image, imported: int, dotnet: bool) -> tuple[str | None, dict[str, float]]:
    """Name of the packer (``unknown`` when only its effect was seen) or None, and the entropies that were measured."""
    named = next((_NAMES[name] for name in map(section_name, image.pe.sections) if name in _NAMES), None)
    entropies: dict[str, float] = {}
    if named or (imported <= FEW_IMPORTS and not dotnet):
        for section in image.pe.sections:
            if section.Characteristics & 0x2000_0000 and section.SizeOfRawData >= _SMALLEST:
                entropies[section_name(section)] = _entropy(image, section)
    if named:
        return named, entropies
    if entropies and max(entropies.values()) >= NOISE:
        return "unknown", entropies
    return None, entropies


def section_name(section: Any) -> str:
    """The section's name without its padding."""
    raw: bytes = section.Name
    return raw.split(b"\0", 1)[0].decode("utf-8", "backslashreplace")


def _entropy(image: Image, section: Any) -> float:
    """Shannon entropy over the beginning, the middle and the end of a section, rounded to two places."""
    start, size = section.PointerToRawData, min(section.SizeOfRawData, image.size)
    counts: Counter[int] = Counter()
    for at in {0, max(0, size // 2 - _SAMPLE // 2), max(0, size - _SAMPLE)}:
        counts.update(image.data[start + at : start + min(at + _SAMPLE, size)])
    total = sum(counts.values())
    if not total:
        return 0.0
    return round(-sum(n / total * math.log2(n / total) for n in counts.values()), 2)
