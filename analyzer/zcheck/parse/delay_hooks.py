"""The delay-load helper linked into an x64 program, and whether the program hooks it.

Names of the helper and its hooks are gone after linking. The helper (MSVC, delayhlp.cpp) raises the exception
0xC06D007E when a DLL is not found, and near that loads ``__pfnDliNotifyHook2`` and then ``__pfnDliFailureHook2`` (``48
8B 05``) from read-only data; a pointer other than zero is a hook: the program may load the DLL from elsewhere, or under
another name.
"""

from __future__ import annotations

import re
from typing import BinaryIO

from zcheck.model.facts import PeFacts, Section

HELPER, NOTIFY, FAILURE = "__delayLoadHelper2", "__pfnDliNotifyHook2", "__pfnDliFailureHook2"
_MODULE_NOT_FOUND = b"\x7e\x00\x6d\xc0"
_LOAD = re.compile(rb"(?s)\x48\x8b\x05(....)")
_BEFORE, _AFTER = 0x140, 0x200
_PIECE = 4 * 1024 * 1024


def hooks(file: BinaryIO, facts: PeFacts) -> tuple[str, ...]:
    """``__delayLoadHelper2`` when the helper is there, and the names of the hooks that are set."""
    if facts.machine != "x64" or not any(dll.delay for dll in facts.imports):
        return ()
    for section in facts.sections:
        if section.executable:
            for at in range(0, section.size, _PIECE):
                start = max(0, at - _BEFORE)
                file.seek(section.offset + start)
                data = file.read(min(_PIECE + _AFTER + _BEFORE, section.size - start))
                place = data.find(_MODULE_NOT_FOUND)
                if place >= 0:
                    return (HELPER, *_set(file, facts, data, place, section.rva + start))
    return ()


def _set(file: BinaryIO, facts: PeFacts, data: bytes, place: int, rva: int) -> tuple[str, ...]:
    targets: list[int] = []
    for match in _LOAD.finditer(data, max(0, place - _BEFORE), place + _AFTER):
        target = rva + match.end() + int.from_bytes(match.group(1), "little", signed=True)
        section = _section(facts, target)
        if section is not None and section.name == ".rdata" and target not in targets:
            targets.append(target)
    found = []
    for name, target in zip((NOTIFY, FAILURE), targets, strict=False):
        section = _section(facts, target)
        if section is not None:
            file.seek(section.offset + target - section.rva)
            if any(file.read(8)):
                found.append(name)
    return tuple(found)


def _section(facts: PeFacts, rva: int) -> Section | None:
    for section in facts.sections:
        if section.rva <= rva < section.rva + section.size:
            return section
    return None
