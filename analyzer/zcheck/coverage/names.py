"""DLL names → CUDA libraries, and functions → workload families. Exact names only."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import cached_property

from zcheck.coverage.base import Asker
from zcheck.model.coverage import DllName, Family


class LibraryNames:
    """Recognises DLL base names, whole and without regard to case; answers are remembered."""

    def __init__(self, rows: Iterable[tuple[str, str, str, str]]) -> None:
        """``rows``: library, pattern of the whole name, kind, source; the first that fits wins."""
        self._rows = list(rows)
        self._patterns = [re.compile(row[1], re.I) for row in self._rows]
        # One alternation, so that the many names that are no CUDA library cost one match.
        self._any = re.compile("|".join(f"(?:{row[1]})" for row in self._rows), re.I)
        self._known: dict[str, DllName | None] = {}

    def match(self, dll: str) -> DllName | None:
        """The CUDA library that this DLL name (with or without folders) stands for, None when it is none."""
        # ``cublas64_*.dll``: digits that only the running program knows; any stand for them here.
        name = re.split(r"[\\/]", dll)[-1].lower().replace("*", "12")
        if name not in self._known:
            self._known[name] = self._find(name) if self._any.fullmatch(name) else None
        return self._known[name]

    def _find(self, name: str) -> DllName | None:
        for row, pattern in zip(self._rows, self._patterns, strict=True):
            if pattern.fullmatch(name):
                return DllName(name, row[0], row[2], row[3])
        return None


class NameTables(Asker):
    """Look-ups in the tables under ``names/``."""

    @cached_property
    def _library_names(self) -> LibraryNames:
        return LibraryNames(self.query("SELECT library, pattern, kind, source FROM dll_name ORDER BY rowid"))

    def library_names(self) -> LibraryNames:
        """The matcher of DLL names."""
        return self._library_names

    def library_of(self, dll: str) -> str | None:
        """Id of the CUDA library that a DLL name stands for, or None."""
        found = self._library_names.match(dll)
        return found.library if found else None

    @cached_property
    def known_libraries(self) -> frozenset[str]:
        """Ids of all CUDA libraries that the tables name."""
        rows = self.query("SELECT library FROM dll_name UNION SELECT library FROM function_state")
        return frozenset(row[0] for row in rows)

    @cached_property
    def _family_rows(self) -> dict[str, list[tuple[str, str, str, str]]]:
        # A few thousand rows: reading them at once costs less than one batch of look-ups.
        rows = self.query(
            "SELECT name, family, kind, library FROM family UNION ALL SELECT name, family, kind, library FROM operator"
        )
        found: dict[str, list[tuple[str, str, str, str]]] = defaultdict(list)
        for name, family, kind, library in rows:
            found[name].append((name, family, kind, library))
        return dict(found)

    @cached_property
    def _family_names(self) -> dict[str, tuple[str, ...]]:
        return {}

    def family_names(self, name: str) -> tuple[str, ...]:
        """Names of the workload families of one exact name, each once."""
        known = self._family_names.get(name)
        if known is None:
            rows = self._family_rows.get(name)
            known = self._family_names[name] = tuple(dict.fromkeys(row[1] for row in rows)) if rows else ()
        return known

    def families(self, names: Iterable[str]) -> dict[str, tuple[Family, ...]]:
        """Workload families by exact name; names without one are left out."""
        known = self._family_rows
        return {name: tuple(Family(*row) for row in known[name]) for name in names if name in known}
