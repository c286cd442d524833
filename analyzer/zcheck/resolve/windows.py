"""What Windows itself provides: ``coverage_db/windows_dlls.csv``, with its sources in ``windows_dlls_sources.csv``."""

from __future__ import annotations

import csv
import fnmatch
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from zcheck.errors import DataError
from zcheck.model.base import Record
from zcheck.model.facts import Machine

Kind = Literal["system", "redistributable", "driver"]
API_SETS = ("api-ms-", "ext-ms-")
"""prefixes that the loader maps through the API set schema, before it looks at any file"""
_KINDS = ("system", "redistributable", "driver")
_COLUMNS = ("dll", "kind", "known", "x64", "x86", "arm64", "note")


class WindowsDll(Record, frozen=True):
    """One DLL that every PC has outside of the bundle; ``known``: the loader never looks for it beside the program."""

    name: str
    kind: Kind = "system"
    known: bool = False
    machines: tuple[str, ...] = ()
    """machines for which Windows 10 or 11 has it; empty: for all"""
    note: str = ""


class WindowsDlls:
    """The table, asked by lower-case DLL name."""

    def __init__(self, rows: Iterable[Mapping[str, str]] = ()) -> None:
        """``rows`` have the columns of the CSV file; raises DataError when one lacks a column or has an odd kind."""
        self._exact: dict[str, WindowsDll] = {}
        self._patterns: list[tuple[str, WindowsDll]] = []
        for row in rows:
            if not all(column in row for column in _COLUMNS) or row["kind"] not in _KINDS:
                raise DataError(f"a row of windows_dlls is malformed: {dict(row)!r}")
            kind: Kind = row["kind"]  # type: ignore[assignment]
            dll = WindowsDll(
                name=row["dll"],
                kind=kind,
                known=row["known"] == "yes",
                machines=tuple(machine for machine in ("x64", "x86", "arm64") if row[machine]),
                note=row["note"],
            )
            if "*" in dll.name:
                self._patterns.append((dll.name, dll))
            else:
                self._exact[dll.name] = dll

    def get(self, name: str, machine: Machine | None = None) -> WindowsDll | None:
        """The row of a lower-case DLL name, or None; with ``machine``, only if Windows has it for such processes."""
        found = self._exact.get(name)
        if found is None:
            found = next((dll for pattern, dll in self._patterns if fnmatch.fnmatchcase(name, pattern)), None)
        if found and machine and found.machines:
            wanted = "arm64" if machine in ("arm64", "arm64ec") else machine
            if wanted in ("x64", "x86", "arm64") and wanted not in found.machines:
                return None
        return found


def read_windows_dlls(path: Path) -> WindowsDlls:
    """The table of a checkout; raises DataError naming the file when it cannot be read."""
    try:
        with path.open(newline="", encoding="utf-8") as file:
            return WindowsDlls(csv.DictReader(file))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from None
