"""The coverage database, read only: questions about releases, libraries and functions, asked in batches.

Names are compared exactly, never by prefix; DLL names without regard to case. HIP, CUDA and GPU tables are answered by
the mixins of ``hip``, ``cuda``, ``zluda`` and ``names``.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from zcheck.coverage.cuda import CudaTables
from zcheck.coverage.hip import HipTables
from zcheck.coverage.locate import open_database
from zcheck.coverage.replay_facts import PtxTables, tables_from
from zcheck.coverage.tables import PLAIN
from zcheck.coverage.zluda import ZludaTables
from zcheck.model.base import Confidence
from zcheck.model.coverage import Release, StateRange
from zcheck.model.stack import FunctionAnswer, State

_CUDNN = ("cudnn9", "cudnn8")
_FORKS = 1000
"""orders of forks' releases begin here"""


class Database(ZludaTables, HipTables, CudaTables):
    """Answers of the compiled database. One connection, which may be used from several threads one after another."""

    @classmethod
    def open(cls, tables: Path | None = None, cache: Path | None = None) -> Database:
        """The database of this installation, or of the tables in a folder; raises DataError when it cannot be had."""
        return cls(open_database(tables, cache))

    def ptx_tables(self) -> PtxTables:
        """The tables that a replay needs."""
        return tables_from(self._connection)

    def close(self) -> None:
        """Close the connection; the object answers nothing afterwards."""
        self._connection.close()

    @cached_property
    def meta(self) -> dict[str, str]:
        """``date`` (of the newest fact), ``schema`` and ``hash`` of the tables."""
        return dict(self.query("SELECT key, value FROM meta"))

    @property
    def date(self) -> str:
        """The day up to which facts were gathered, YYYY-MM-DD: the ``database`` of reports."""
        return self.meta["date"]

    def source(self, key: str) -> str:
        """Repository and commit of a source id (``hipify``, ``therock`` …); raises KeyError for an unknown one."""
        rows = self.query('SELECT repository, "commit", what FROM source WHERE id = ?', (key,))
        if not rows:
            raise KeyError(key)
        return f"{rows[0][0]}@{rows[0][1]}: {rows[0][2]}"

    @cached_property
    def _columns(self) -> dict[str, list[str]]:
        return {table.name: [row[1] for row in self.query(f"PRAGMA table_info({table.name})")] for table in PLAIN}

    def rows(self, table: str, **where: str) -> list[dict[str, str]]:
        """Rows of a table as the text tables have them (names: ``tables.PLAIN``), where columns equal these values.

        For facts that no other method speaks of: ``rows("cuda_device_code", dll="cufft64_11.dll")``. Raises KeyError
        for an unknown table or column.
        """
        columns = self._columns[table]
        for column in where:
            if column not in columns:
                raise KeyError(f"{table}.{column}")
        condition = " AND ".join(f'"{column}" = ?' for column in where) or "1"
        found = self.query(f'SELECT * FROM "{table}" WHERE {condition} ORDER BY rowid', list(where.values()))
        return [dict(zip(columns, row, strict=True)) for row in found]

    def document(self, name: str) -> str | None:
        """Text of a YAML document of ``coverage_db/`` (``frameworks.yaml``), None when there is none."""
        rows = self.query("SELECT text FROM document WHERE name = ?", (name,))
        return str(rows[0][0]) if rows else None

    # --- functions ------------------------------------------------------------------------------------------------

    def libraries_with_functions(self, release: Release) -> frozenset[str]:
        """Libraries whose exports were read for this release."""
        if release.tag not in self._library_cache:
            rows = self.query(
                "SELECT DISTINCT library FROM function_state WHERE ? BETWEEN since AND until", (release.order,)
            )
            self._library_cache[release.tag] = frozenset(row[0] for row in rows)
        return self._library_cache[release.tag]

    @cached_property
    def _library_cache(self) -> dict[str, frozenset[str]]:
        return {}

    def table_library(self, release: Release, library: str) -> str:
        """The library id under which this release's functions stand: the fork has one ``cudnn`` for 8 and 9, and
        ``cudnn`` asked of an upstream release means its cuDNN 9, or 8 where it has no 9."""
        known = self.libraries_with_functions(release)
        if library in known:
            return library
        if library in _CUDNN and "cudnn" in known:
            return "cudnn"
        if library == "cudnn":
            return next((name for name in _CUDNN if name in known), library)
        return library

    def functions(self, release: Release, names: Sequence[tuple[str, str]]) -> list[FunctionAnswer]:
        """The answer for each (library, exported name), in the order asked.

        ``not-exported``: this release ships the library without that function; ``library-missing``: it ships no such
        CUDA library; ``unknown``: the release or the library was not read.
        """
        stands_in = {library: self.table_library(release, library) for library in {asked[0] for asked in names}}
        rows = self._release_rows(release)
        absent = {library: self._absent(release, library) for library in stands_in}
        main = self.nearest_main(release) or release
        read_at, declared_at = self.tree(main), self.tree(release)
        family_names, newest, tags = self.family_names, self.newest_order, self.tags
        answers: list[FunctionAnswer] = []
        for library, name in names:
            row = rows.get((stands_in[library], name))
            if row is None:
                state, source, confidence = absent[library]
                answers.append(
                    FunctionAnswer(
                        library, name, state, source=source, confidence=confidence, families=family_names(name)
                    )
                )
                continue
            state, since, until, limit, path, refined = row
            exact = release.is_main or not (refined or state == "implemented")
            answers.append(
                FunctionAnswer(
                    library,
                    name,
                    state,
                    tags[since],
                    None if until == newest or until >= _FORKS else tags[until],
                    limit or None,
                    f"{read_at}:{path}" if path else f"{declared_at} (exports of {library})",
                    "high" if exact else "medium",
                    family_names(name),
                )
            )
        return answers

    @cached_property
    def _row_cache(self) -> dict[str, dict[tuple[str, str], tuple[Any, ...]]]:
        return {}

    def _release_rows(self, release: Release) -> dict[tuple[str, str], tuple[Any, ...]]:
        # One question for the whole release (some 3,000 rows, a few milliseconds) serves every later batch.
        if release.tag not in self._row_cache:
            rows = self.query(
                "SELECT library, name, state, run_since, run_until, limit_text, source, refined FROM function_state"
                " WHERE ? BETWEEN since AND until",
                (release.order,),
            )
            self._row_cache[release.tag] = {row[:2]: row[2:] for row in rows}
        return self._row_cache[release.tag]

    def _absent(self, release: Release, library: str) -> tuple[State, str | None, Confidence]:
        """State, source and confidence of a function that no row of this library has."""
        if release.read and self.table_library(release, library) in self.libraries_with_functions(release):
            return "not-exported", f"{self.tree(release)} (exports of {library})", "high"
        if release.read and library in self.known_libraries and library not in self.shipped_libraries(release):
            return "library-missing", f"{self.tree(release)} (libraries of the Windows build)", "high"
        return "unknown", None, "low"

    def history(self, name: str, library: str | None = None) -> list[StateRange]:
        """All stretches of one exported name over all releases, upstream's first, by library."""
        rows = self.query(
            "SELECT library, state, since, until, limit_text, source FROM function_state WHERE name = ?"
            " AND (? IS NULL OR library = ?) ORDER BY library, since",
            (name, library, library),
        )
        ranges: list[StateRange] = []
        for found, state, since, until, limit, source in rows:
            where = self.release_by_order(since)
            reading = self.source_of(where, source) if source else f"{self.tree(where)} (exports of {found})"
            last = None if until == self.newest_order or until >= _FORKS else self.tag(until)
            ranges.append(StateRange(found, name, state, self.tag(since), last, limit, reading))
        return ranges

    def exported(self, release: Release, library: str) -> dict[str, str]:
        """Every function that this release's library exports → its state."""
        rows = self.query(
            "SELECT name, state FROM function_state WHERE library = ? AND ? BETWEEN since AND until ORDER BY name",
            (self.table_library(release, library), release.order),
        )
        return dict(rows) if release.read else {}

    def state_counts(self, release: Release) -> dict[str, dict[str, int]]:
        """library → state → number of functions."""
        rows = self.query(
            "SELECT library, state, count(*) FROM function_state WHERE ? BETWEEN since AND until GROUP BY 1, 2",
            (release.order,),
        )
        counts: dict[str, dict[str, int]] = defaultdict(dict)
        for library, state, number in rows:
            counts[library][state] = number
        return dict(counts)

    def suggestions(self, name: str, limit: int = 5) -> list[str]:
        """Known names near ``name`` (functions of ZLUDA, NVIDIA's exports, HIPIFY), nearest first."""
        import difflib

        head = name[:4]
        rows = self.query(
            "SELECT name FROM function_state WHERE name LIKE ? UNION SELECT function FROM cuda_export"
            " WHERE function LIKE ? UNION SELECT cuda_name FROM hipify WHERE cuda_name LIKE ?",
            (head + "%",) * 3,
        )
        names: Iterable[str] = (row[0] for row in rows if abs(len(row[0]) - len(name)) <= 12)
        return difflib.get_close_matches(name, list(names), limit, 0.75)
