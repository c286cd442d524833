"""Import and delay-import tables, as the Windows loader and the delay-load helper walk them.

Source: Microsoft, PE Format, "The .idata Section" and "Delay-Load Import Tables"; delayimp.h (``dlattrRva``).
"""

from __future__ import annotations

import struct

from zcheck.model.facts import ImportedDll, Symbol
from zcheck.model.text import shown
from zcheck.parse.pe_image import DELAY_IMPORT, IMPORT, Image

DELAY_BY_RVA = 1
"""bit of a delay descriptor's attributes: its fields are RVAs; without it they are virtual addresses"""
_CHUNK = 512
_DLL_NAME = 1024
_NONSENSE = 64
"""unreadable names after which the rest of a file's imports is given up: real files have none"""


class _Count:
    """Symbols that may still be read of one file, and unreadable names that are still put up with."""

    def __init__(self, image: Image) -> None:
        # Each symbol takes a place in a table of the file; tables that overlap are no tables.
        self.left = min(image.limits.symbols, image.size // (8 if image.wide else 4))
        self.nonsense = _NONSENSE


def read_imports(image: Image) -> tuple[ImportedDll, ...]:
    """Ordinary imports, then delay imports, in the order of their tables."""
    count = _Count(image)
    return (*_ordinary(image, count), *_delayed(image, count))


def _ordinary(image: Image, count: _Count) -> list[ImportedDll]:
    found: list[ImportedDll] = []
    table, _ = image.directory(IMPORT)
    at = table
    while table and count.nonsense >= 0:
        raw = image.read(at, 20)
        if len(raw) < 20:
            image.problem("the import table is cut off", image.offset(table))
            break
        lookup, stamp, _, name_at, addresses = struct.unpack("<5I", raw)
        # The loader stops at the first descriptor without a name or an address table, whatever the directory's size.
        if not name_at or not addresses:
            break
        if len(found) >= image.limits.dlls:
            image.problem(f"more than {image.limits.dlls} imported DLLs", image.offset(at))
            break
        name = image.text(name_at, _DLL_NAME)
        if not name:
            image.problem("an imported DLL has no readable name", image.offset(at))
            count.nonsense -= 1
        else:
            thunks = lookup if lookup and image.offset(lookup) is not None else addresses
            if thunks == addresses and stamp:
                # Bound without a lookup table: the address table holds addresses of another system's DLLs.
                image.problem(f"bound addresses stand where {shown(name)}'s functions were named", image.offset(at))
                symbols: tuple[Symbol, ...] = ()
            else:
                symbols = _symbols(image, name, thunks, count, virtual=False)
            found.append(ImportedDll(dll=name, symbols=symbols, bound=bool(stamp)))
        at += 20
    return found


def _delayed(image: Image, count: _Count) -> list[ImportedDll]:
    found: list[ImportedDll] = []
    table, _ = image.directory(DELAY_IMPORT)
    at = table
    while table and count.nonsense >= 0:
        raw = image.read(at, 32)
        if len(raw) < 32:
            image.problem("the delay-import table is cut off", image.offset(table))
            break
        attributes, name_at, _, _, names, _, _, _ = struct.unpack("<8I", raw)
        if not name_at:
            break
        if len(found) >= image.limits.dlls:
            image.problem(f"more than {image.limits.dlls} delay-imported DLLs", image.offset(at))
            break
        virtual = not attributes & DELAY_BY_RVA
        if virtual:
            name_at, names = _from_virtual(image, name_at), _from_virtual(image, names)
        name = image.text(name_at, _DLL_NAME)
        if not name:
            image.problem("a delay-imported DLL has no readable name", image.offset(at))
            count.nonsense -= 1
        else:
            found.append(ImportedDll(dll=name, symbols=_symbols(image, name, names, count, virtual), delay=True))
        at += 32
    return found


def _from_virtual(image: Image, address: int) -> int:
    """RVA of a virtual address; descriptors have 32 bits for it, so above 4 GiB the base is cut to its low half."""
    for base in (image.base, image.base & 0xFFFF_FFFF):
        rva = address - base if address >= base else (address - base) & 0xFFFF_FFFF
        if image.offset(rva) is not None:
            return rva
    return address  # some tools write RVAs without setting the bit


def _symbols(image: Image, dll: str, table: int, count: _Count, virtual: bool) -> tuple[Symbol, ...]:
    width = 8 if image.wide else 4
    by_ordinal = 1 << (width * 8 - 1)
    found: list[Symbol] = []
    at = table
    while True:
        thunks = image.words(at, _CHUNK, width)
        for thunk in thunks:
            if not thunk:
                return tuple(found)
            if count.left <= 0:
                image.problem(
                    f"more imported symbols than a file of this size can hold; {shown(dll)} was not read whole"
                )
                return tuple(found)
            count.left -= 1
            if thunk & by_ordinal:
                found.append(Symbol(ordinal=thunk & 0xFFFF))
                continue
            rva = _from_virtual(image, thunk) if virtual else thunk & 0x7FFF_FFFF
            named = image.hint_and_name(rva)
            if named is None or not named[1]:
                image.problem(f"a function imported from {shown(dll)} has no readable name", image.offset(at))
                count.nonsense -= 1
                if not found or count.nonsense < 0:  # no table at all, or a file of nonsense
                    return tuple(found)
                continue
            found.append(Symbol(name=named[1], hint=named[0]))
        if len(thunks) < _CHUNK:
            image.problem(f"the table of functions imported from {shown(dll)} is cut off", image.offset(table))
            return tuple(found)
        at += _CHUNK * width
