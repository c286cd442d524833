"""DLL names of frameworks and of a program's own ways to an AMD GPU, and the families of framework operators."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from zcheck.coverage.database import Database
from zcheck.model.stack import FunctionAnswer


@dataclass(frozen=True)
class FrameworkDll:
    """A framework's DLL; ``role`` framework where it imports everything that any program might want."""

    framework: str
    role: str
    operators: str


class FrameworkNames:
    """Recognises whole DLL base names without regard to case."""

    def __init__(self, dlls: Iterable[tuple[str, ...]], own_paths: Iterable[tuple[str, ...]]) -> None:
        """Rows of names/framework_dlls.csv and names/own_paths.csv without their sources."""
        self._dlls = [(re.compile(row[0], re.I), FrameworkDll(*row[1:4])) for row in dlls]
        self._own = [(re.compile(row[0], re.I), row[1]) for row in own_paths]
        self._known: dict[str, FrameworkDll | None] = {}

    def of(self, dll: str) -> FrameworkDll | None:
        """The framework whose DLL this is, or None."""
        name = dll.rsplit("/", 1)[-1].lower()
        if name not in self._known:
            self._known[name] = next((found for pattern, found in self._dlls if pattern.fullmatch(name)), None)
        return self._known[name]

    def framework_of(self, dll: str) -> str | None:
        """The framework that this DLL belongs to and that imports everything, or None."""
        found = self.of(dll)
        return found.framework if found and found.role == "framework" else None

    def operators_of(self, dll: str) -> str | None:
        """The operator table of this DLL's exports, or None."""
        found = self.of(dll)
        return found.operators or None if found else None

    def own_path_of(self, dll: str) -> str | None:
        """The API of an own AMD path that this DLL name stands for, or None."""
        name = dll.rsplit("/", 1)[-1]
        return next((api for pattern, api in self._own if pattern.fullmatch(name)), None)


@lru_cache(maxsize=4)
def framework_names(database: Database) -> FrameworkNames:
    """The matcher over the tables of this database."""
    return FrameworkNames(
        database.query("SELECT pattern, framework, role, operators FROM framework_dll ORDER BY rowid"),
        database.query("SELECT pattern, api FROM own_path_dll ORDER BY rowid"),
    )


def operator_answers(database: Database, table: str, names: Iterable[str]) -> list[FunctionAnswer]:
    """Families of C++ operators. A scoped name is looked up whole, then by its enclosing scopes
    (``at::_ops::addmm::call`` → ``at::_ops::addmm``), since what is tabled is the operator, not each overload."""
    asked = {name: _scopes(name) for name in names}
    rows = database.families(scope for scopes in asked.values() for scope in scopes)
    answers = []
    for name, scopes in asked.items():
        found = next((rows[scope] for scope in scopes if scope in rows), ())
        families = tuple(dict.fromkeys(row.family for row in found if row.library == table))
        answers.append(FunctionAnswer(library=table, name=name, state="unknown", families=families))
    return answers


def _scopes(name: str) -> list[str]:
    parts = name.split("::")
    return ["::".join(parts[:end]) for end in range(len(parts), 1, -1)] or [name]
