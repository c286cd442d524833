"""Makes tables of ``coverage_db/`` again from upstream checkouts, and says how they differ from what is there."""

from __future__ import annotations

import csv
import io
import os
import re
from pathlib import Path
from typing import NamedTuple

from zcheck.coverage.checkout import Checkout
from zcheck.coverage.compile import read_table
from zcheck.coverage.import_hipify import COLUMNS, read_functions
from zcheck.coverage.import_zluda import LIBRARIES, intervals, read_release
from zcheck.errors import DataError, InputError

_FORKS = 1000
_TAG = re.compile(r"v\d+(-preview\.\d+)?")
_States = dict[str, dict[str, dict[str, str]]]


class Imported(NamedTuple):
    """What an import read. ``texts``: path of each table → the whole of it made again, the main one first.

    ``same`` counts rows that agree; ``different``: (where, function, read, in the table); ``revisions``: releases or
    the commit that were read; ``unread``: releases of the checkout that the tables do not have.
    """

    texts: dict[str, str]
    same: int
    different: list[tuple[str, str, str, str]]
    revisions: list[str]
    unread: list[str]


def table_text(columns: list[str], rows: list[tuple[str, ...]]) -> str:
    """A CSV table as it stands in ``coverage_db/``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def write_tables(folder: Path, imported: Imported) -> list[str]:
    """Put the tables that changed in place of the old ones, each whole or not at all; their paths."""
    written = []
    for path, text in imported.texts.items():
        target = folder / path
        if target.read_bytes() != text.encode():
            made = target.with_suffix(f".{os.getpid()}.tmp")
            made.write_bytes(text.encode())
            made.replace(target)
            written.append(path)
    return written


def _table_states(rows: list[list[str]], order: dict[str, int], tags: list[str]) -> _States:
    newest = order[tags[-1]]
    states: _States = {tag: {} for tag in tags}
    tag_at = {order[tag]: tag for tag in tags}
    for library, name, state, since, until in rows:
        for number in range(order[since], (order[until] if until else newest) + 1):
            if number in tag_at:
                states[tag_at[number]].setdefault(library, {})[name] = state
    return states


def import_zluda(checkout: Path, folder: Path) -> Imported:
    """Read every upstream release from v4 on that the checkout has as a tag.

    Libraries that a release builds in another way (all of v3, nvapi) and releases that the checkout lacks keep the
    states of the table; so does the fork. Releases newer than the tables are named but not read: their layout,
    capabilities and PTX forms have to be read by people first. Raises InputError, DataError.
    """
    columns, releases = read_table(folder / "zluda/releases.csv")
    records = [dict(zip(columns, row, strict=True)) for row in releases]
    order = {record["tag"]: int(record["order"]) for record in records if record["order"]}
    commits = {record["tag"]: record["commit"] for record in records}
    tags = sorted((tag for tag, number in order.items() if number < _FORKS), key=order.__getitem__)
    columns, rows = read_table(folder / "zluda/functions.csv")
    upstream = [row for row in rows if order[row[3]] < _FORKS]
    forks: list[tuple[str, ...]] = [tuple(row) for row in rows if order[row[3]] >= _FORKS]
    table = _table_states(upstream, order, tags)
    known = {item.library for item in LIBRARIES}
    same = 0
    different: list[tuple[str, str, str, str]] = []
    read: list[str] = []
    states: _States = {}
    with Checkout(checkout) as source:
        there = source.tags()
        for tag in tags:
            states[tag] = dict(table[tag])
            if tag not in there or tag == "v3":
                continue
            if there[tag][0] != commits[tag]:
                raise DataError(
                    f"{checkout}: tag {tag} is commit {there[tag][0][:12]}, the tables were read at {commits[tag][:12]}"
                )

            def text(path: str, tag: str = tag) -> str | None:
                return source.read(tag, path)

            def files(path: str, tag: str = tag) -> list[str]:
                return source.files(tag, path)

            found = read_release(text, files)
            read.append(tag)
            for library in sorted((set(found) | set(table[tag])) & known):
                mine, theirs = found.get(library, {}), table[tag].get(library, {})
                for name in sorted(set(mine) | set(theirs)):
                    if mine.get(name) == theirs.get(name):
                        same += 1
                    else:
                        read_as, there_as = mine.get(name, "not exported"), theirs.get(name, "not exported")
                        different.append((f"{tag} {library}", name, read_as, there_as))
                states[tag].pop(library, None)
                if mine:
                    states[tag][library] = mine
        unread = [tag for tag in there if _TAG.fullmatch(tag) and tag not in commits]
    if not read:
        raise InputError(f"{checkout} has none of the release tags that the tables know: fetch its tags first")
    body = intervals(tags, states)
    whole = sorted([*body, *forks], key=lambda row: (row[0], row[1], order[row[3]]))
    return Imported({"zluda/functions.csv": table_text(columns, whole)}, same, different, read, unread)


def import_hipify(checkout: Path, folder: Path, revision: str = "HEAD") -> Imported:
    """Read HIPIFY's function maps at a revision (its types stay as they are); raises InputError, DataError.

    The commit that was read goes into the tables of sources with them.
    """
    with Checkout(checkout) as source:
        commit, _ = source.commit_of(revision)
        paths = [path for path in source.files(commit, "src") if re.search(r"/CUDA2HIP_\w+_functions\.cpp$", path)]
        texts = [source.read(commit, path) or "" for path in paths]
        statistics = source.read(commit, "src/Statistics.h") or ""
    rows = read_functions(texts, statistics)
    if not rows:
        raise InputError(f"{checkout} holds no function maps of HIPIFY at {revision}")
    columns, stored = read_table(folder / "hip/hipify.csv")
    if columns != COLUMNS:
        raise DataError(f"{folder / 'hip/hipify.csv'}, line 1: other columns than the import makes")
    mine, theirs = {row[0]: row for row in rows}, {row[0]: tuple(row) for row in stored}
    different = []
    for name in sorted({*mine, *theirs}):
        if mine.get(name) != theirs.get(name):
            different.append(("hipify", name, _changes(mine.get(name), theirs), _changes(theirs.get(name), mine)))
    same = len({*mine, *theirs}) - len(different)
    made = {"hip/hipify.csv": table_text(columns, rows)}
    for path, key, value in (("sources.csv", "id", "hipify"), ("hip/sources.csv", "table", "hipify.csv")):
        names, records = read_table(folder / path)
        for record in records:
            if record[names.index(key)] == value:
                record[names.index("commit")] = commit
        made[path] = table_text(names, [tuple(record) for record in records])
    return Imported(made, same, different, [commit], [])


def _changes(row: tuple[str, ...] | None, others: dict[str, tuple[str, ...]]) -> str:
    """The columns in which a row differs from the other table's row of that name."""
    if row is None:
        return "absent"
    other = others.get(row[0])
    if other is None:
        return "present"
    pairs = zip(COLUMNS, row, other, strict=True)
    return "; ".join(f"{column} {value or 'empty'}" for column, value, was in pairs if value != was)
