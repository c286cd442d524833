"""NVIDIA's own DLLs: exports per version, what needs what, and which driver calls were measured."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from zcheck.coverage.base import Asker, split
from zcheck.model.coverage import CudaExport, DriverCall, Measurement, RecordedReport


class CudaTables(Asker):
    """Look-ups in the tables under ``cuda/``, ``truth/`` and ``reports/``."""

    def cuda_exports(
        self, library: str | None = None, dll: str | None = None, version: str | None = None
    ) -> frozenset[str]:
        """Functions exported by NVIDIA's DLLs, by library id, DLL name (any case) and file version; empty: not read."""
        ids = [
            int(row[0])
            for row in self.query("SELECT id, library, dll, version FROM cuda_file")
            if (library is None or row[1] == library)
            and (dll is None or row[2].lower() == dll.lower())
            and (version is None or row[3] == version)
        ]
        marks = ", ".join("?" * len(ids))
        rows = self.query(f"SELECT DISTINCT function FROM cuda_export WHERE file IN ({marks})", ids)
        return frozenset(row[0] for row in rows)

    def exported_by(self, names: Iterable[str]) -> dict[str, tuple[CudaExport, ...]]:
        """The DLLs of NVIDIA that export each exact name."""
        rows = self.query(
            "SELECT e.function, e.library, f.dll, f.version, f.cuda_major FROM json_each(?) AS asked"
            " CROSS JOIN cuda_export AS e ON e.function = asked.value"
            " JOIN cuda_file AS f ON f.id = CAST(e.file AS TEXT) ORDER BY e.function, e.file",
            (json.dumps(sorted(set(names))),),
        )
        found: dict[str, list[CudaExport]] = defaultdict(list)
        for function, library, dll, version, major in rows:
            found[function].append(CudaExport(library, function, dll, version, major))
        return {name: tuple(items) for name, items in found.items()}

    def dll_needs(self, dll: str) -> list[tuple[str, str, str, str]]:
        """(version, kind of edge, DLL needed, symbols) for one of NVIDIA's DLLs."""
        rows = self.query(
            "SELECT version, kind, depends_on, symbols FROM cuda_dll_dep WHERE lower(dll) = lower(?) ORDER BY rowid",
            (dll,),
        )
        return [(row[0], row[1], row[2], row[3]) for row in rows]

    def fingerprint(self, identifiers: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Runtime files (``nvidia_cuda_runtime-13.5.37/cudart_static.lib`` …) that hold each identifier string."""
        rows = self.query(
            "SELECT p.identifier, f.file FROM json_each(?) AS asked CROSS JOIN fingerprint AS p"
            " ON p.identifier = asked.value JOIN fingerprint_file AS f ON f.id = CAST(p.file AS TEXT)"
            " ORDER BY p.identifier, p.file",
            (json.dumps(sorted(set(identifiers))),),
        )
        found: dict[str, list[str]] = defaultdict(list)
        for identifier, file in rows:
            found[identifier].append(file)
        return {name: tuple(files) for name, files in found.items()}

    # --- measured calls -------------------------------------------------------------------------------------------

    def runtime_to_driver(self, function: str, cuda_version: str | None = None) -> tuple[DriverCall, ...]:
        """Driver functions that a runtime function was seen to call.

        ``cuda_version``: a measured version (``12.4.127``) or its beginning at a dot (``12``, ``12.4``); None: all.
        ``(first runtime call in a process)`` is the start of the runtime.
        """
        rows = self.query(
            'SELECT runtime_function, driver_function, phase, "when", linkage, cuda_versions FROM runtime_to_driver'
            " WHERE runtime_function = ? ORDER BY rowid",
            (function,),
        )
        return tuple(self._calls(rows, cuda_version))

    def runtime_measured(self, function: str) -> bool:
        """Whether the runtime function was measured at all: no driver call of a measured function is a fact."""
        return bool(self.query("SELECT 1 FROM runtime_measured WHERE runtime_function = ? LIMIT 1", (function,)))

    def library_to_driver(self, library: str, function: str) -> tuple[DriverCall, ...]:
        """Driver functions that a library function was seen to call; libraries that ZLUDA replaces left out."""
        rows = self.query(
            "SELECT function, driver_function, phase, '', caller_library, version FROM library_to_driver"
            " WHERE library = ? AND function = ? AND caller_under_zluda <> 'replaced' AND driver_function <> ''"
            " ORDER BY rowid",
            (library, function),
        )
        return tuple(self._calls(rows, None))

    def library_to_library(self, library: str, function: str) -> tuple[tuple[str, str], ...]:
        """(library, function) that a library function was seen to call in another CUDA library."""
        rows = self.query(
            "SELECT DISTINCT called_library, called_function FROM library_to_library"
            " WHERE library = ? AND function = ?",
            (library, function),
        )
        return tuple((row[0], row[1]) for row in rows)

    @staticmethod
    def _calls(rows: list[tuple[Any, ...]], version: str | None) -> Iterable[DriverCall]:
        for caller, driver, phase, when, linkage, versions in rows:
            seen = split(versions)
            if version is None or any(item == version or item.startswith(version + ".") for item in seen):
                yield DriverCall(caller, driver, phase, when, linkage, seen)

    def private_tables(self) -> dict[str, tuple[str, ...]]:
        """GUID of a private driver table → libraries that were seen to ask for it."""
        found: dict[str, list[str]] = defaultdict(list)
        for guid, caller in self.query("SELECT DISTINCT table_guid, caller_library FROM private_table ORDER BY 1, 2"):
            found[guid].append(caller)
        return {guid: tuple(callers) for guid, callers in found.items()}

    # --- recorded runs --------------------------------------------------------------------------------------------

    def recorded_runs(self) -> list[RecordedReport]:
        """Recorded runs, passed and failed."""
        return [RecordedReport(*row) for row in self.query("SELECT * FROM run ORDER BY rowid")]

    def measurements(self) -> list[Measurement]:
        """Recorded A/B measurements."""
        found = []
        for row in self.query("SELECT * FROM measurement ORDER BY rowid"):
            change = float(row[9]) if row[9] else None
            head: tuple[str, str, str, str, str, str] = row[:6]
            found.append(Measurement(*head, int(row[6]), float(row[7]), row[8], change, row[10], row[11]))
        return found
