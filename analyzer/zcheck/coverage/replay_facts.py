"""Coverage tables → what the replay needs to know of one release (``ReleasePtx``).

The tables come in as plain rows, whether from the compiled SQLite file or from the text tables themselves.
Read are releases, ptx_history (forms, directives, special registers with since and until), ptx_forms (main releases
and forks), ptx_rejects (main releases) and ptx_behaviour (selection and effects, read from each tag).
"""

from __future__ import annotations

import difflib
import sqlite3
from collections.abc import Mapping
from typing import Any, get_args

import msgspec

from zcheck.coverage.ptx_rejects import LATER, conditions
from zcheck.errors import DataError, UsageError
from zcheck.model.base import Record
from zcheck.model.device_code import LaterReject, PtxForm, PtxReject, ReleasePtx, Selection

Row = Mapping[str, str]
TABLES = {
    "releases": "release",
    "history": "ptx_history",
    "forms": "ptx_form",
    "rejects": "ptx_reject",
    "behaviour": "ptx_behaviour",
    "gfx": "gfx",
    "aliases": "release_alias",
}
"""field of PtxTables → table of the compiled database"""


class PtxTables(Record, frozen=True):
    """Rows of the tables that the replay needs, as name → text."""

    releases: tuple[dict[str, str], ...]
    history: tuple[dict[str, str], ...]
    forms: tuple[dict[str, str], ...]
    rejects: tuple[dict[str, str], ...]
    behaviour: tuple[dict[str, str], ...]
    gfx: tuple[dict[str, str], ...] = ()
    aliases: tuple[dict[str, str], ...] = ()


def tables_from(database: sqlite3.Connection) -> PtxTables:
    """The rows out of the compiled coverage database; raises DataError when a table is missing."""
    found: dict[str, tuple[dict[str, str], ...]] = {}
    for field, table in TABLES.items():
        try:
            cursor = database.execute(f"SELECT * FROM {table}")
            names = [column[0] for column in cursor.description]
            found[field] = tuple(
                {name: "" if value is None else str(value) for name, value in zip(names, row, strict=True)}
                for row in cursor
            )
        except sqlite3.Error as error:
            raise DataError(f"the coverage database lacks {table}: {error}") from None
    return PtxTables(**found)


def known_releases(tables: PtxTables) -> tuple[str, ...]:
    """Tags that were read, in the order of the releases, forks last."""
    read = [row for row in tables.releases if row["order"]]
    return tuple(row["tag"] for row in sorted(read, key=lambda row: int(row["order"])))


def main_releases(tables: PtxTables) -> tuple[str, ...]:
    """Tags that were read closely, in order: those that others inherit from."""
    mains = {row["main"] for row in tables.releases if row["order"]}
    return tuple(tag for tag in known_releases(tables) if tag in mains)


def release_ptx(tables: PtxTables, tag: str) -> ReleasePtx:
    """The facts of one release, by tag or alias.

    Raises UsageError for a tag that no table knows or that was not read, DataError for a malformed table.
    """
    order = {row["tag"]: int(row["order"]) for row in tables.releases if row["order"]}
    main_of = {row["tag"]: row["main"] for row in tables.releases}
    tag = {row["alias"]: row["release"] for row in tables.aliases}.get(tag, tag)
    if tag not in order:
        if tag in main_of:
            raise UsageError(f"ZLUDA {tag} was not read, so nothing is known about its device code")
        near = difflib.get_close_matches(tag, order, 1)
        raise UsageError(f"ZLUDA {tag!r} is no release that is known" + (f"; did you mean {near[0]}?" if near else ""))
    main = main_of[tag]
    number = order[tag]

    def holds(row: Row) -> bool:
        try:
            since = order[row["since"]]
            until = order[row["until"]] if row["until"] else _line_end(order, since)
        except KeyError as error:
            raise DataError(f"a PTX table names the unknown release {error}") from None
        return since <= number <= until

    fork = number >= 1000
    if fork:
        rows = [row for row in tables.forms if tag in row["releases"].split(";")]
    else:
        rows = [row for row in tables.history if holds(row)]
    kinds: dict[str, list[Row]] = {"opcode": [], "directive": [], "special_register": []}
    for row in rows:
        kinds.setdefault(row["kind"], []).append(row)
    rejects, later = _rejects(tables, main)
    behaviour = {row["key"]: row["value"] for row in tables.behaviour if holds(row)}
    sources = [row["source"] for row in tables.behaviour if row["key"] == "selection" and holds(row)]
    fields: dict[str, Any] = {
        "release": tag,
        "selection": behaviour.get("selection", ""),
        "forms": tuple(PtxForm(row["name"], row["form"]) for row in kinds["opcode"]),
        "registers": tuple(row["name"] for row in kinds["special_register"]),
        "directives": tuple(row["name"] for row in kinds["directive"]),
        "rejects": rejects,
        "later": later,
        "confidence": "high" if tag == main else "medium",
        "inherits": "" if tag == main else main,
        "source": sources[0] if sources else "",
    }
    for key in ("compression", "refused_registers", "skipped_registers", "target_options"):
        fields[key] = tuple(behaviour.get(key, "").split())
    for key in ("any_order", "target_suffix"):
        fields[key] = behaviour.get(key, "yes") == "yes"
    for key in ("unknown_statement", "unread_text", "no_ptx", "later_effect"):
        if key in behaviour:
            fields[key] = behaviour[key]
    fields["precompile"] = behaviour.get("precompile") == "yes"
    if "address_size_default" in behaviour:
        fields["address_size_default"] = int(behaviour["address_size_default"])
    if fields["selection"] not in get_args(Selection):
        raise DataError(f"ptx_behaviour says nothing known of how {tag} selects PTX: {fields['selection']!r}")
    try:
        return msgspec.convert(fields, ReleasePtx)
    except msgspec.ValidationError as error:
        raise DataError(f"the PTX tables on {tag} are malformed: {error}") from None


def _line_end(order: dict[str, int], since: int) -> int:
    """An open end: the newest release of the line (upstream or fork)."""
    return max(number for number in order.values() if (number >= 1000) == (since >= 1000))


def _rejects(tables: PtxTables, main: str) -> tuple[tuple[PtxReject, ...], tuple[LaterReject, ...]]:
    parser, later = [], []
    for row in tables.rejects:
        if main not in row["releases"].split(";"):
            continue
        if row["stage"] == "parser":
            # "always" and an empty list say the same.
            when = tuple(w for w in (part.strip() for part in row["when"].split(";")) if w and w != "always")
            unknown = [w for w in when if w not in conditions()]
            if unknown:
                raise DataError(f"ptx_rejects: {unknown[0]!r} is no condition that is understood")
            parser.append(PtxReject(row["what"], when, row["source"]))
        elif row["what"] in LATER:
            later.append(LaterReject(row["what"], row["source"]))
        else:
            raise DataError(f"ptx_rejects: {row['what']!r} is nothing that is understood")
    return tuple(parser), tuple(later)
