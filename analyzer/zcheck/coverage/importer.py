"""Makes tables of ``coverage_db/`` again from upstream checkouts, and says how they differ from what is there."""

from __future__ import annotations

import csv
import io
import os
import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from zcheck.coverage.checkout import Checkout
from zcheck.coverage.compile import read_table
from zcheck.coverage.import_zluda import LIBRARIES, intervals, read_release
from zcheck.errors import DataError, InputError

_FORKS = 1000
_TAG = re.compile(r"v\d+(-preview\.\d+)?")
_States = dict[str, dict[str, dict[str, str]]]


class Imported(NamedTuple):
    """What an import read. ``different``: (release, library, function, read, in the table), at most a few thousand.

    ``text`` is the whole table made again; ``unread`` are releases of the checkout that the tables do not have.
    """

    table: str
    text: str
    same: int
    different: list[tuple[str, str, str, str, str]]
    releases: list[str]
    unread: list[str]


def table_text(columns: list[str], rows: list[tuple[str, ...]]) -> str:
    """A CSV table as it stands in ``coverage_db/``."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(rows)
    return out.getvalue()


def write_table(folder: Path, imported: Imported) -> None:
    """Put the table in place of the old one, whole or not at all."""
    target = folder / imported.table
    made = target.with_suffix(f".{os.getpid()}.tmp")
    made.write_text(imported.text, encoding="utf-8", newline="\n")
    made.replace(target)


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
    same: Counter[str] = Counter()
    different: list[tuple[str, str, str, str, str]] = []
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
                        same[tag] += 1
                    else:
                        row = tag, library, name, mine.get(name, "not exported"), theirs.get(name, "not exported")
                        different.append(row)
                states[tag].pop(library, None)
                if mine:
                    states[tag][library] = mine
        unread = [tag for tag in there if _TAG.fullmatch(tag) and tag not in commits]
    if not read:
        raise InputError(f"{checkout} has none of the release tags that the tables know: fetch its tags first")
    body = intervals(tags, states)
    whole = sorted([*body, *forks], key=lambda row: (row[0], row[1], order[row[3]]))
    return Imported("zluda/functions.csv", table_text(columns, whole), sum(same.values()), different, read, unread)
