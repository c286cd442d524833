"""Workload families of exported functions: the reviewed rules of ``names/family_rules.csv`` spelled out name by name.

Look-ups use the exact names of ``names/families.csv`` only; the rules are there so that the list can be made again when
the tables of exports grow.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterable
from pathlib import Path

from zcheck.coverage.compile import read_table
from zcheck.errors import DataError

_NAME_TABLES = (
    ("cuda/exports.csv", "function"),
    ("zluda/functions.csv", "name"),
    ("zluda/functions_not_on_windows.csv", "name"),
)


def exported_names(folder: Path) -> set[tuple[str, str]]:
    """(library, name) of every C function that NVIDIA's DLLs or ZLUDA's libraries export, from the text tables."""
    names: set[tuple[str, str]] = set()
    for path, column in _NAME_TABLES:
        columns, rows = read_table(folder / path)
        library, name = columns.index("library"), columns.index(column)
        names.update((row[library], row[name]) for row in rows if not row[name].startswith("?"))
    return names


def expand(
    rules: Iterable[tuple[str, str, str, str]], names: Iterable[tuple[str, str]]
) -> list[tuple[str, str, str, str]]:
    """Rows (name, library, family, kind) of all names that a rule (family, kind, libraries, pattern) fits whole.

    Raises DataError for a pattern that is none.
    """
    compiled = []
    for family, kind, libraries, pattern in rules:
        try:
            compiled.append((family, kind, set(libraries.split("|")), re.compile(pattern)))
        except re.error as error:
            raise DataError(f"names/family_rules.csv: {pattern!r} is no pattern: {error}") from error
    found = {
        (name, library, family, kind)
        for library, name in names
        for family, kind, libraries_, pattern_ in compiled
        if library in libraries_ and pattern_.fullmatch(name)
    }
    return sorted(found)


def families(folder: Path) -> list[tuple[str, str, str, str]]:
    """The rows that ``names/families.csv`` of this folder ought to hold."""
    _, rules = read_table(folder / "names/family_rules.csv")
    return expand([(row[0], row[1], row[2], row[3]) for row in rules], exported_names(folder))


def write_families(folder: Path) -> int:
    """Make ``names/families.csv`` of this folder again; how many rows it has. Raises DataError."""
    rows = families(folder)
    with open(folder / "names/families.csv", "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["name", "library", "family", "kind"])
        writer.writerows(rows)
    return len(rows)


if __name__ == "__main__":
    write_families(Path(sys.argv[1]))
