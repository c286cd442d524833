"""Which functions a program really uses through CUDA 13's linked-in loaders (``cuda.lib``, the hybrid runtime).

Since CUDA 13 the import library for ``nvcuda.dll`` is a static loader: at start it asks ``cuGetProcAddress`` for all
700 functions and keeps each answer in a slot. The linker keeps a function's stub only where the program calls it, and
only stubs read slots. So code tells what strings cannot: the loader pairs a name and a slot (two ``lea`` before one
call), and a slot that other code reads belongs to a used function.

x64 forms (Intel SDM volume 2, RIP-relative ModRM 00 reg 101): ``48/4C 8D`` lea, ``48/4C 8B`` mov, ``FF /2 /4`` call and
jmp, ``48/4C 39/3B`` and ``48 83 /7`` compare; ``41 B8`` and ``41 B9`` set the third and fourth argument (version,
flags), ``44 8D`` the fourth relative to a zeroed register.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import BinaryIO, NamedTuple

from zcheck.model.base import Confidence, Limits
from zcheck.model.facts import PeFacts, Section
from zcheck.model.hidden import DynamicFunction, Place
from zcheck.parse.names import NameTables

_PIECE = 4 * 1024 * 1024
_MARGIN = 64
_LEA = re.compile(rb"(?s)\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....)")
_READS = (
    re.compile(rb"(?s)\x8b[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....)"),
    re.compile(rb"(?s)\xff[\x15\x25](....)"),
    re.compile(rb"(?s)\x3b[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....)"),
    re.compile(rb"(?s)\x39[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](....)"),
    re.compile(rb"(?s)\x83\x3d(....)."),
)
_STEP = re.compile(
    rb"(?s)[\x48\x4c]\x8d[\x05\x0d\x15\x1d\x25\x2d\x35\x3d](?P<lea>....)|\xff\x15(?P<call>....)"
    rb"|\x41\xb8(?P<version>....)|\x41\xb9(?P<flags>....)|\x44\x8d[\x48-\x4f](?P<relative>.)"
)
_CHAIN = re.compile(rb"(?s)\xe8....\xb9..\x00\x00\x48\x89\x05....\xe8")
_NUMBERED = re.compile(rb"(?s)\xb9(?P<number>..\x00\x00)|\xe8(?P<call>....)|\x48\x89\x05(?P<store>....)")
_GAP = 512
"""bytes of code between two names that still belong to one loader function"""
_FEWEST = 20
"""pairs that make a loader: a program's own table of a few names is none"""


class _Slot(NamedTuple):
    name: str
    symbol: str
    version: int


def used(
    file: BinaryIO, facts: PeFacts, name_offsets: Mapping[int, str], names: NameTables, limits: Limits
) -> tuple[DynamicFunction, ...]:
    """The driver functions whose loader slot is read outside the loader, by name; empty when there is no loader.

    ``name_offsets``: file offset → name of the whole-string names found in the file.
    """
    texts = {rva: name for offset, name in name_offsets.items() if (rva := _rva(facts, offset)) is not None}
    code = [s for s in facts.sections if s.executable and s.size]
    found = [rva for rva, target in _targets(file, code, (_LEA,)) if target in texts]
    slots: dict[int, _Slot] = {}
    called: set[int] = set()
    for first, last, _ in _runs(found, _GAP):
        section = _section(facts, first)
        if section is not None:  # with room for the block before the first name and behind the last
            slots.update(_pairs(file, section, first - 64, last + 64, facts, texts, names, called))
    for pointer in called:
        slots.pop(pointer, None)  # the loader's own pointer to cuGetProcAddress
    if len(slots) < _FEWEST:
        return ()
    uses: dict[int, int] = {}
    for rva, target in _targets(file, code, _READS):
        if target in slots:
            uses.setdefault(target, rva)
    result = []
    for target, rva in uses.items():
        section = _section(facts, rva)
        if section is not None:
            slot = slots[target]
            offset = rva - section.rva
            place = Place(section.name, offset, section.offset + offset, "code")
            symbol = slot.symbol if slot.symbol != slot.name else ""
            confidence: Confidence = "high" if slot.symbol else "medium"
            result.append(
                DynamicFunction(slot.name, "nvcuda", "loader", confidence, place, symbol=symbol, version=slot.version)
            )
    return tuple(sorted(result, key=lambda function: (function.name, function.symbol)))[: limits.symbols]


def used_runtime(file: BinaryIO, facts: PeFacts, names: NameTables, limits: Limits) -> tuple[DynamicFunction, ...]:
    """The runtime functions used through CUDA 13's hybrid loader, by name; empty when there is no such loader.

    The loader asks the driver's runtime DLL for each function by number (``B9`` number, ``E8`` call, ``48 89 05`` store
    into the slot, hundreds of times one after the other); a slot that other code reads is a used function.
    """
    code = [s for s in facts.sections if s.executable and s.size]
    slots: dict[int, str] = {}
    for section in code:
        for start, data in _pieces(file, section):
            chain = [match.start() for match in _CHAIN.finditer(data)]
            for first, last, links in _runs(chain, 64):
                if links >= _FEWEST:
                    first, last = max(0, first - 16), last + 32
                    slots.update(_numbered(data[first:last], start + first, names))
    if len(slots) < _FEWEST:
        return ()
    found: dict[str, DynamicFunction] = {}
    for rva, target in _targets(file, code, _READS):
        name = slots.get(target, "")
        section_of = _section(facts, rva)
        if name and name not in found and section_of is not None:
            offset = rva - section_of.rva
            place = Place(section_of.name, offset, section_of.offset + offset, "code")
            found[name] = DynamicFunction(name, "cudart", "loader", "high", place)
    return tuple(found[name] for name in sorted(found))[: limits.symbols]


def _numbered(data: bytes, rva: int, names: NameTables) -> dict[int, str]:
    slots: dict[int, str] = {}
    number = asked = -1
    for match in _NUMBERED.finditer(data):
        value = int.from_bytes(match.group(match.lastgroup or 0), "little", signed=True)
        if match.lastgroup == "number":
            number = value
        elif match.lastgroup == "call":
            asked = number
        elif asked in names.hybrid:
            slots[rva + match.end() + value] = names.hybrid[asked]
            asked = -1  # a second store keeps something else
    return slots


def _pieces(file: BinaryIO, section: Section) -> Iterator[tuple[int, bytes]]:
    """(RVA, bytes) of a section, overlapping by a quarter so that a loader function lies whole in one of them."""
    step = _PIECE * 3 // 4
    for at in range(0, section.size, step):
        file.seek(section.offset + at)
        yield section.rva + at, file.read(min(_PIECE, section.size - at))


def _section(facts: PeFacts, rva: int) -> Section | None:
    for section in facts.sections:
        if section.rva <= rva < section.rva + max(section.virtual_size, section.size):
            return section
    return None


def _rva(facts: PeFacts, offset: int) -> int | None:
    for section in facts.sections:
        if section.offset <= offset < section.offset + section.size:
            return section.rva + offset - section.offset
    return None


def _targets(
    file: BinaryIO, sections: list[Section], patterns: tuple[re.Pattern[bytes], ...]
) -> Iterator[tuple[int, int]]:
    """(RVA of the opcode byte, RVA that the RIP-relative operand points to) of each match in executable sections."""
    for section in sections:
        for at in range(0, section.size, _PIECE):
            file.seek(section.offset + at)
            data = file.read(min(_PIECE + _MARGIN, section.size - at))
            base = section.rva + at
            for pattern in patterns:
                for match in pattern.finditer(data):
                    if match.start() < _PIECE:
                        here = base + match.start()
                        yield here, base + match.end() + int.from_bytes(match.group(1), "little", signed=True)


def _runs(places: list[int], gap: int) -> list[tuple[int, int, int]]:
    """(first, last, count) of places that follow each other within ``gap`` bytes."""
    runs: list[list[int]] = []
    for place in sorted(places):
        if runs and place - runs[-1][1] <= gap:
            runs[-1][1] = place
            runs[-1][2] += 1
        else:
            runs.append([place, place, 1])
    return [(first, last, count) for first, last, count in runs]


def _pairs(
    file: BinaryIO,
    section: Section,
    first: int,
    last: int,
    facts: PeFacts,
    texts: Mapping[int, str],
    names: NameTables,
    called: set[int],
) -> dict[int, _Slot]:
    """Slot RVA → function, from the blocks between calls; adds the pointers that are called to ``called``."""
    start = max(first, section.rva)
    file.seek(section.offset + start - section.rva)
    data = file.read(max(0, min(last, section.rva + section.size) - start))
    pairs: dict[int, _Slot] = {}
    asked: list[str] = []
    slot = version = flags = 0
    for match in _STEP.finditer(data):
        kind = match.lastgroup
        raw = match.group(kind) if kind else b""
        if kind == "lea":
            target = start + match.end() + int.from_bytes(raw, "little", signed=True)
            if target in texts:
                asked.append(texts[target])
            elif _holds_slots(facts, target):
                slot = target
        elif kind == "version":
            version = int.from_bytes(raw, "little")
        elif kind == "flags":
            flags = int.from_bytes(raw, "little")
        elif kind == "relative":
            flags = raw[0]
        elif kind == "call":
            called.add(start + match.end() + int.from_bytes(raw, "little", signed=True))
            if asked and slot and 1000 <= version < 100_000:
                name = min(asked, key=len)
                # of two names, the longer is the exported symbol that the loader falls back to
                exact = max(asked, key=len) if len(asked) > 1 else ""
                symbol = exact or names.loader.get((name, version, flags), "")
                pairs[slot] = _Slot(name, symbol, version)
            asked, slot, version, flags = [], 0, 0, 0
    return pairs


def _holds_slots(facts: PeFacts, rva: int) -> bool:
    section = _section(facts, rva)
    return section is not None and not section.executable
