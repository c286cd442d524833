"""CUDA that import tables do not show: names in strings, linked-in runtimes, .NET imports, one-file programs."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from zcheck.cli.cache_store import FactCache
from zcheck.cli.data import coverage
from zcheck.model.base import DEFAULT_LIMITS, Problem
from zcheck.model.evidence import STATIC_RUNTIME, FileFact, Item, Limitation, Use
from zcheck.model.facts import PeFacts
from zcheck.model.hidden import HiddenFacts

if TYPE_CHECKING:
    from zcheck.parse.names import NameTables

PEEK = msgspec.structs.replace(DEFAULT_LIMITS, total_payload=1024 * 1024 * 1024)
"""bounds for a look into a one-file program: a gigabyte unpacked says enough, and a bomb ends there"""


@lru_cache(maxsize=1)
def name_tables() -> NameTables:
    """All names that the coverage database knows, for the scanner."""
    from zcheck.parse.names import build

    ask = coverage().query
    files = {row[0]: row[1:] for row in ask("SELECT id, version, file FROM linked_file")}
    functions = ask(
        "SELECT function, library FROM cuda_export GROUP BY function, library"
        " UNION ALL SELECT DISTINCT name, library FROM function_state"
        " UNION ALL SELECT symbol, 'nvcuda' FROM proc_address UNION ALL SELECT symbol, 'nvcuda' FROM driver_loader"
    )
    return build(
        ((row[0], row[1]) for row in functions),
        ((row[0], row[1]) for row in ask("SELECT library, pattern FROM dll_name ORDER BY rowid")),
        (
            (kind, *files[str(number)], name)
            for kind, name, numbers in ask("SELECT kind, name, files FROM linked_name")
            for number in _numbers(numbers)
        ),
        (
            (row[0], row[1], int(row[2]), int(row[3]))
            for row in ask("SELECT symbol, name, version, flags FROM driver_loader")
        ),
        ((int(row[0]), row[1]) for row in ask("SELECT number, name FROM hybrid_function")),
    )


def _numbers(text: str) -> Iterable[int]:
    """``1-3 7`` → 1, 2, 3, 7."""
    for part in text.split():
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


class HiddenReader:
    """Scans each file once, for however many entries."""

    def __init__(self, cache: FactCache | None = None) -> None:
        """Tables are built at the first scan that the cache does not answer."""
        self._cache = cache or FactCache(None)
        self._found: dict[Path, HiddenFacts] = {}

    def read(self, path: Path, facts: PeFacts, skip: Iterable[tuple[int, int]]) -> HiddenFacts:
        """The hidden facts of a file; ``skip`` are (offset, size) ranges of device code."""
        if path not in self._found:
            from zcheck.parse.strings import scan

            gaps = [(start, start + size) for start, size in skip]
            self._found[path] = self._cache.file_fact(
                "hidden",
                path,
                HiddenFacts,
                lambda: scan(path, facts, name_tables(), gaps),
                path.name,
                repr(gaps),
                coverage().meta["hash"],
            )
        return self._found[path]


def linked_runtime(facts: HiddenFacts, module: str) -> list[Item]:
    """A runtime linked into a module as evidence: it starts like the DLL, and loads the driver by name."""
    items: list[Item] = []
    for runtime in facts.runtimes:
        if runtime.kind != "cudart" or runtime.whole_file:
            continue
        versions = runtime.oldest if runtime.oldest == runtime.newest else f"{runtime.oldest} to {runtime.newest}"
        why = f"CUDA runtime {versions} is linked in"
        items += [
            FileFact(STATIC_RUNTIME, role="vendor", description=f"CUDA {runtime.newest} Runtime, linked into {module}"),
            Use("module", module, "call", STATIC_RUNTIME, found="bundle", init=True, because=why),
            Use("vendor", STATIC_RUNTIME, "dynamic", "nvcuda.dll", load="later", init=True, because=why),
        ]
        break
    return items


def archive_items(path: Path, name: str, facts: PeFacts) -> tuple[Item, ...]:
    """The insides of a one-file program, read in memory, and what it hides; nothing for an ordinary program."""
    from zcheck.collect.hidden import archive_items as limits
    from zcheck.collect.hidden import member_items
    from zcheck.parse.archive import recognise
    from zcheck.parse.archive_pe import pe_members
    from zcheck.parse.strings import scan_file

    items: list[Item] = []
    library_of = coverage().library_of
    try:
        with path.open("rb") as file:
            archive = recognise(file, name, facts)
            if archive is None:
                return ()
            inside = {member.path.rpartition("/")[2].lower() for member in archive.members}
            problems: list[Problem] = []
            for member, pe, stream in pe_members(file, name, facts, PEEK, problems) if archive.readable else ():
                vendor = library_of(member) is not None
                found = HiddenFacts(pe.name) if vendor else scan_file(stream, pe.name, pe, name_tables())
                items += member_items(name, member, pe, found, "vendor" if vendor else "module", library_of, inside)
            items += [Limitation("partly-read", name, f"{p.path}: {p.reason}") for p in problems if p.partial][:1]
    except OSError:
        return ()
    return (*items, *limits(name, archive, looked_into=archive.readable))
