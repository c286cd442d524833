"""Reading the DLLs of a PC: one cached reader, and facts in brief."""

from __future__ import annotations

import hashlib
import ntpath
from collections.abc import Callable
from pathlib import Path

from zcheck.errors import InputError
from zcheck.host.source import Source, key
from zcheck.model.base import Problem
from zcheck.model.facts import PeFacts
from zcheck.model.host import DllFact

ReadPe = Callable[[Path], PeFacts]
_SECTION_LIMIT = 64 * 1024 * 1024
_HASH_LIMIT = 64 * 1024 * 1024
"""bytes; ZLUDA's own files are smaller"""


class Dlls:
    """Reads each DLL once. ``read_pe`` is parse's reader, handed in by cli: it raises InputError for no PE."""

    def __init__(self, source: Source, read_pe: ReadPe) -> None:
        self.source = source
        self._read = read_pe
        self._facts: dict[str, PeFacts | None] = {}
        self.problems: list[Problem] = []

    def facts(self, path: str) -> PeFacts | None:
        """The facts of a DLL by Windows path; None when it is not there or cannot be read at all."""
        folded = key(path)
        if folded not in self._facts:
            place = self.source.local(path)
            facts: PeFacts | None = None
            if place is not None and place.is_file():
                try:
                    facts = self._read(place)
                except InputError as error:
                    self.problems.append(Problem(path, error.message, partial=True))
                except OSError as error:
                    self.problems.append(Problem(path, f"cannot be read: {error.strerror or error}", partial=True))
                else:
                    self.problems += [
                        Problem(path, problem.reason, problem.offset, problem.partial) for problem in facts.problems
                    ]
            self._facts[folded] = facts
        return self._facts[folded]

    def brief(self, path: str) -> DllFact:
        """Version, company, machine and export count of a DLL."""
        facts = self.facts(path)
        place = self.source.local(path)
        name = place.name if place is not None else ntpath.basename(path)
        if facts is None:
            return DllFact(name=name, path=path)
        return DllFact(
            name=name,
            path=path,
            version=version_of(facts),
            company=facts.version.company if facts.version else "",
            machine=facts.machine,
            size=facts.size,
            exports=len(facts.exports),
        )

    def names(self, path: str) -> frozenset[str]:
        """The names that a DLL exports."""
        facts = self.facts(path)
        return frozenset(export.name for export in facts.exports if export.name) if facts else frozenset()

    def section(self, path: str, name: str) -> bytes:
        """The raw bytes of one section, 64 MiB at most; empty when there is none."""
        facts, place = self.facts(path), self.source.local(path)
        if facts is None or place is None:
            return b""
        for section in facts.sections:
            if section.name == name:
                try:
                    with place.open("rb") as file:
                        file.seek(section.offset)
                        return file.read(min(section.size, _SECTION_LIMIT))
                except OSError:
                    return b""
        return b""

    def sha256(self, path: str) -> str:
        """SHA-256 of a file, or empty when it is absent, unreadable or larger than 64 MiB."""
        place = self.source.local(path)
        try:
            if place is None or place.stat().st_size > _HASH_LIMIT:
                return ""
            return hashlib.sha256(place.read_bytes()).hexdigest()
        except OSError:
            return ""


def version_of(facts: PeFacts) -> str:
    """The file version: the fixed number, else the string."""
    if facts.version is None:
        return ""
    return facts.version.fixed_version or facts.version.file_version


def by_nvidia(facts: PeFacts) -> bool:
    """Whether the version resource names NVIDIA as the maker."""
    return facts.version is not None and "nvidia" in facts.version.company.casefold()
