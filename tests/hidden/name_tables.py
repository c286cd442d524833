"""NameTables from the text tables of ``coverage_db/``, for tests and benchmarks of the hidden part."""

from __future__ import annotations

import csv
from functools import cache
from pathlib import Path

from zcheck.parse.names import NameTables, build

FOLDER = Path(__file__).resolve().parents[2] / "coverage_db"


def rows(name: str) -> list[dict[str, str]]:
    """Rows of one CSV table."""
    with open(FOLDER / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def numbers(text: str) -> list[int]:
    """``1-3 7`` → [1, 2, 3, 7]."""
    out: list[int] = []
    for part in text.split():
        first, _, last = part.partition("-")
        out.extend(range(int(first), int(last or first) + 1))
    return out


@cache
def tables() -> NameTables:
    """All names that the repository knows."""
    functions = [(row["function"], row["library"]) for row in rows("cuda/exports.csv")]
    functions += [(row["name"], row["library"]) for row in rows("zluda/functions.csv")]
    functions += [(row["symbol"], "nvcuda") for row in rows("zluda/proc_address.csv")]
    functions += [(row["symbol"], "nvcuda") for row in rows("fingerprints.loader.csv")]
    files = {row["id"]: row for row in rows("fingerprints.files.csv")}
    return build(
        functions,
        [(row["library"], row["pattern"]) for row in rows("names/dll_names.csv")],
        [
            (row["kind"], files[str(number)]["version"], files[str(number)]["file"], row["name"])
            for row in rows("fingerprints.csv")
            for number in numbers(row["files"])
        ],
        [
            (row["symbol"], row["name"], int(row["version"]), int(row["flags"]))
            for row in rows("fingerprints.loader.csv")
        ],
        [(int(row["number"]), row["name"]) for row in rows("fingerprints.hybrid.csv")],
    )
