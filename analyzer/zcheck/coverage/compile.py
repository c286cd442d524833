"""Text tables → one SQLite file. Standard library only, because the build of the wheel runs it.

The same tables give the same bytes (with the same SQLite version): rows are inserted in the order of the files, and
nothing of the machine or the hour goes in. Malformed tables raise DataError naming file and line.
"""

from __future__ import annotations

import csv
import hashlib
import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from zcheck.coverage.tables import FUNCTIONS, PLAIN, READINGS, RELEASES, SCHEMA, SPREAD
from zcheck.errors import DataError

STATES = ("implemented", "partial", "no-op", "returns-error", "ends-process")
_FORKS_FROM = 1000
"""orders from here on belong to forks: each release of a fork stands for itself"""


def read_table(path: Path) -> tuple[list[str], list[list[str]]]:
    """Columns and rows of one CSV table; raises DataError when it is absent, not UTF-8 or a row has a wrong length."""
    try:
        with open(path, newline="", encoding="utf-8") as file:
            reader = csv.reader(file, strict=True)
            columns = next(reader, [])
            rows = []
            for row in reader:
                if len(row) != len(columns):
                    raise DataError(f"{path}, line {reader.line_num}: {len(row)} fields where {len(columns)} belong")
                rows.append(row)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path} cannot be read as a table: {error}") from error
    if not columns or len(set(columns)) != len(columns) or not all(name.isidentifier() for name in columns):
        raise DataError(f"{path}, line 1: column names must be there, be words and differ")
    return columns, rows


def table_files(folder: Path) -> list[Path]:
    """All tables and documents of ``coverage_db/``, in the order that the hash and the compiler take them."""
    found = [path for path in folder.rglob("*") if path.suffix in (".csv", ".yaml") and path.is_file()]
    return sorted(found, key=lambda path: path.relative_to(folder).as_posix())


def tables_hash(folder: Path) -> str:
    """Hash (hex) of all tables' names and bytes and of the compiled form: the key of the compiled file."""
    digest = hashlib.sha256(f"zcheck coverage {SCHEMA} {PLAIN!r} {SPREAD!r}\n".encode())
    for path in table_files(folder):
        data = path.read_bytes()
        digest.update(f"{path.relative_to(folder).as_posix()} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()


def parse_ranges(text: str) -> list[int]:
    """``1-3 7`` → [1, 2, 3, 7]; raises ValueError on anything else."""
    numbers: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def format_ranges(numbers: Iterable[int]) -> str:
    """The opposite of parse_ranges, sorted and without doubles."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(f"{first}-{last}" if first != last else str(first) for first, last in runs)


class _Line(NamedTuple):
    """The order of releases: number of each tag, nearest main release of each number, newest upstream number."""

    order: dict[str, int]
    main_of: dict[int, int]
    newest: int

    def until(self, tag: str, since: int) -> int:
        if tag:
            return self.order[tag]
        return self.newest if since < _FORKS_FROM else since


def _release_line(folder: Path) -> _Line:
    columns, rows = read_table(folder / RELEASES)
    records = [dict(zip(columns, row, strict=True)) for row in rows]
    order = {record["tag"]: int(record["order"]) for record in records if record["order"]}
    main_of = {order[record["tag"]]: order[record["main"]] for record in records if record["order"]}
    return _Line(order, main_of, max(number for number in order.values() if number < _FORKS_FROM))


class _State(NamedTuple):
    """A state over releases since..until (numbers); ``refined``: limit, state or source come from the main release."""

    since: int
    until: int
    state: str
    limit: str
    source: str
    refined: int


def _segments(since: int, until: int, line: _Line) -> Iterator[tuple[int, int, int]]:
    """Cut since..until where the nearest main release changes: (first, last, main)."""
    first = since
    while first <= until:
        main, last = line.main_of[first], first
        while last < until and line.main_of.get(last + 1) == main:
            last += 1
        yield first, last, main
        first = last + 1


def _merge(states: Iterable[_State]) -> list[_State]:
    merged: list[_State] = []
    for state in states:
        if merged and merged[-1].until + 1 == state.since and merged[-1][2:] == state[2:]:
            merged[-1] = merged[-1]._replace(until=state.until)
        else:
            merged.append(state)
    return merged


def _function_states(folder: Path) -> Iterator[tuple[object, ...]]:
    """The answer of every function over all releases: what each tag declares (functions.csv), refined by the closer
    reading of the main releases (readings.csv), which a preview inherits while it declares the same as its main."""
    line = _release_line(folder)
    _, rows = read_table(folder / READINGS)
    readings: dict[tuple[str, str, int], tuple[str, str, str]] = {}
    for library, name, releases, state, limit, source in rows:
        if state not in STATES:
            raise DataError(f"{folder / READINGS}: {name} has the unknown state {state!r}")
        for tag in releases.split(";"):
            if tag not in line.order:
                raise DataError(f"{folder / READINGS}: {name} names the unknown release {tag!r}")
            readings[library, name, line.order[tag]] = state, limit, source
    columns, rows = read_table(folder / FUNCTIONS)
    if columns != ["library", "name", "state", "since", "until"]:
        raise DataError(f"{folder / FUNCTIONS}, line 1: the columns are library,name,state,since,until")
    declared: dict[tuple[str, str], list[tuple[int, int, str]]] = defaultdict(list)
    for library, name, state, since_tag, until_tag in rows:
        if state not in STATES or since_tag not in line.order or (until_tag and until_tag not in line.order):
            raise DataError(f"{folder / FUNCTIONS}: {library} {name} has an unknown state or release")
        since = line.order[since_tag]
        declared[library, name].append((since, line.until(until_tag, since), state))
    for (library, name), intervals in sorted(declared.items()):
        at_main = {
            main: state
            for since, until, state in intervals
            for main in {*line.main_of.values()}
            if since <= main <= until
        }
        states: list[_State] = []
        for since, until, state in sorted(intervals):
            for first, last, main in _segments(since, until, line):
                reading = readings.get((library, name, main))
                if reading and at_main.get(main) == state:
                    states.append(_State(first, last, *reading, refined=1))
                else:
                    states.append(_State(first, last, state, "", "", refined=0))
        merged = _merge(states)
        runs = _merge(item._replace(limit="", source="", refined=0) for item in merged)
        for item in merged:
            run = next(run for run in runs if run.since <= item.since <= run.until)
            yield (library, name, item.since, item.until, item.state, run.since, run.until, *item[3:])


def compile_tables(folder: Path, connection: sqlite3.Connection) -> None:
    """Fill an empty SQLite database from the tables of ``folder``; raises DataError where a table is malformed."""
    connection.execute("PRAGMA journal_mode = OFF")
    connection.execute("PRAGMA page_size = 4096")
    with connection:
        for table in PLAIN:
            columns, rows = read_table(folder / table.path)
            marks = ", ".join("?" * len(columns))
            names = ", ".join(f'"{column}" TEXT NOT NULL' for column in columns)
            connection.execute(f'CREATE TABLE "{table.name}" ({names})')
            connection.executemany(f'INSERT INTO "{table.name}" VALUES ({marks})', rows)
            for number, index in enumerate(table.indices):
                keys = ", ".join(f'"{column}"' for column in index)
                connection.execute(f'CREATE INDEX "{table.name}_{number}" ON "{table.name}" ({keys})')
        for path, name, keys_ in SPREAD:
            columns, rows = read_table(folder / path)
            key_columns = [columns.index(key) for key in keys_]
            files = columns.index("files")
            typed = ", ".join(f'"{key}" TEXT NOT NULL' for key in keys_)
            primary = ", ".join(f'"{key}"' for key in (*keys_, "file"))
            connection.execute(
                f'CREATE TABLE "{name}" ({typed}, file INTEGER NOT NULL, PRIMARY KEY ({primary})) WITHOUT ROWID'
            )
            try:
                spread = sorted(
                    (*(row[key] for key in key_columns), file) for row in rows for file in parse_ranges(row[files])
                )
            except ValueError as error:
                raise DataError(f"{folder / path}: a files column is no list of numbers: {error}") from error
            marks = ", ".join("?" * (len(keys_) + 1))
            connection.executemany(f'INSERT INTO "{name}" VALUES ({marks})', spread)
            connection.execute(f'CREATE INDEX "{name}_by_file" ON "{name}" (file)')
        connection.execute(
            "CREATE TABLE function_state (library TEXT NOT NULL, name TEXT NOT NULL, since INTEGER NOT NULL,"
            " until INTEGER NOT NULL, state TEXT NOT NULL, run_since INTEGER NOT NULL, run_until INTEGER NOT NULL,"
            " limit_text TEXT NOT NULL, source TEXT NOT NULL, refined INTEGER NOT NULL,"
            " PRIMARY KEY (library, name, since)) WITHOUT ROWID"
        )
        connection.executemany(
            "INSERT INTO function_state VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", _function_states(folder)
        )
        connection.execute("CREATE INDEX function_state_name ON function_state (name)")
        connection.execute("CREATE TABLE document (name TEXT PRIMARY KEY, text TEXT NOT NULL) WITHOUT ROWID")
        for document in table_files(folder):
            if document.suffix == ".yaml":
                name = document.relative_to(folder).as_posix()
                connection.execute("INSERT INTO document VALUES (?, ?)", (name, document.read_text("utf-8")))
        connection.execute("INSERT INTO meta VALUES ('schema', ?)", (str(SCHEMA),))
        connection.execute("INSERT INTO meta VALUES ('hash', ?)", (tables_hash(folder),))
    connection.execute("PRAGMA optimize")


def compile_file(folder: Path, target: Path) -> None:
    """Compile ``folder`` into the file ``target``, which must not exist yet."""
    connection = sqlite3.connect(target, isolation_level="DEFERRED")
    try:
        compile_tables(folder, connection)
        connection.execute("VACUUM")
    finally:
        connection.close()
