"""The export table with its forwarders. Source: Microsoft, PE Format, "The .edata Section"."""

from __future__ import annotations

import struct

from zcheck.model.facts import Export
from zcheck.parse.pe_image import EXPORT, Image


def read_exports(image: Image) -> tuple[str, tuple[Export, ...]]:
    """The DLL name in the table, and the exports: named ones in table order, then those by ordinal only."""
    start, size = image.directory(EXPORT)
    if not start:
        return "", ()
    raw = image.read(start, 40)
    if len(raw) < 40:
        image.problem("the export table is cut off", image.offset(start))
        return "", ()
    _, _, _, _, own, base, functions, names, at_functions, at_names, at_ordinals = struct.unpack("<IIHHIIIIIII", raw)
    own_name = (image.text(own, 1024) if own else "") or ""
    limit = image.limits.symbols
    if functions > limit or names > limit:
        image.problem(f"more than {limit} exports", image.offset(start))
        functions, names = min(functions, limit), min(names, limit)
    addresses = _all_words(image, at_functions, functions, 4)
    name_rvas = _all_words(image, at_names, names, 4)
    indices = _all_words(image, at_ordinals, names, 2)
    if len(addresses) < functions or len(name_rvas) < names or len(indices) < names:
        image.problem("the export table is cut off", image.offset(start))
    found: list[Export] = []
    named: set[int] = set()
    for name_rva, index in zip(name_rvas, indices, strict=False):
        name = image.text(name_rva)
        if name is None:
            image.problem("an exported function has no readable name", image.offset(start))
            continue
        if index >= len(addresses) or not addresses[index]:
            continue  # a name without a function cannot be linked to
        named.add(index)
        found.append(
            Export(name=name, ordinal=base + index, forwarder=_forwarder(image, addresses[index], start, size))
        )
    for index, address in enumerate(addresses):
        if address and index not in named:
            found.append(Export(ordinal=base + index, forwarder=_forwarder(image, address, start, size)))
    return own_name, tuple(found)


def _all_words(image: Image, rva: int, count: int, width: int) -> tuple[int, ...]:
    return image.words(rva, count, width) if count else ()


def _forwarder(image: Image, address: int, start: int, size: int) -> str | None:
    """An address inside of the export directory is no code but the name of another DLL's function."""
    if not start <= address < start + size:
        return None
    return image.text(address) or None
