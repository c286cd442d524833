"""Every row of the ZLUDA facts is answered by the compiled database, for each release it speaks of."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest

from zcheck.coverage.database import Database
from zcheck.model.coverage import Release

MAIN = ("v3", "v4", "v5", "v6-preview.69", "v6", "v7-preview.9", "lshqqytiger-3.9.5", "lshqqytiger-3.9.5-nightly")
STATES = {
    "implemented": "implemented",
    "partial": "partial",
    "success_noop": "no-op",
    "unimplemented": "returns-error",
}
# What the closer reading of a main release may make of a declared state in a preview.
REFINED = {
    "implemented": {"implemented", "partial", "no-op"},
    "success_noop": {"no-op"},
    "unimplemented": {"returns-error", "ends-process"},
}


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def holds(row: dict[str, str], order: int, orders: dict[str, int]) -> bool:
    return orders[row["since"]] <= order and (not row["until"] or order <= orders[row["until"]])


@pytest.fixture(scope="module")
def upstream(facts: Path, database: Database) -> list[Release]:
    return [database.resolve_release(row["tag"]) for row in rows(facts / "zluda/releases.csv")]


@pytest.fixture(scope="module")
def orders(facts: Path) -> dict[str, int]:
    return {row["tag"]: int(row["order"]) for row in rows(facts / "zluda/releases.csv")}


def test_releases(facts: Path, database: Database) -> None:
    for row in rows(facts / "zluda/releases.csv"):
        found = database.resolve_release(row["tag"])
        assert (found.order, found.date, found.commit, found.read) == (
            int(row["order"]),
            row["date"],
            row["commit"],
            True,
        )


@pytest.mark.parametrize("tag", MAIN)
def test_main_releases_answer_row_for_row(facts: Path, database: Database, tag: str) -> None:
    release = database.resolve_release(tag)
    aborts = json.loads((facts / "zluda/notes.json").read_text())["aborts"].get(tag, {})
    limits = {
        (r["library"], r["function"]): r["limit"] for r in rows(facts / "zluda/limits.csv") if r["release"] == tag
    }
    evidence = {
        (r["library"], r["function"]): r["evidence"]
        for r in rows(facts / "zluda/functions_evidence.csv")
        if r["release"] == tag
    }
    wanted = [r for r in rows(facts / "zluda/functions.csv") if r["release"] == tag]
    answers = database.functions(release, [(r["library"], r["function"]) for r in wanted])
    for row, answer in zip(wanted, answers, strict=True):
        key = row["library"], row["function"]
        ends = row["function"] in aborts.get(row["library"], ())
        assert answer.state == ("ends-process" if ends else STATES[row["status"]]), key
        assert (answer.limit or "") == limits.get(key, ""), key
        assert answer.confidence == "high"
        if key in evidence:
            assert answer.source == f"{release.repository}@{release.commit[:12]}:{evidence[key]}"
    by_library = defaultdict(set)
    for row in wanted:
        by_library[row["library"]].add(row["function"])
    for library, names in by_library.items():
        assert set(database.exported(release, library)) == names
    assert database.libraries_with_functions(release) == set(by_library)


def test_history_at_every_tag(facts: Path, database: Database, upstream: list[Release], orders: dict[str, int]) -> None:
    history = rows(facts / "zluda/history.csv")
    libraries = {row["library"] for row in history}
    for release in upstream:
        expected: dict[str, dict[str, str]] = {library: {} for library in libraries}
        for row in history:
            if holds(row, release.order, orders):
                expected[row["library"]][row["function"]] = row["state"]
        for library, states in expected.items():
            found = database.exported(release, library) if states else {}
            assert found.keys() == states.keys(), (release.tag, library)
            wrong = {n: (states[n], found[n]) for n in states if found[n] not in REFINED[states[n]]}
            assert not wrong, (release.tag, library)
            if not states:
                assert library not in database.libraries_with_functions(release)


def test_previews_inherit_from_their_own_line_only(database: Database, upstream: list[Release]) -> None:
    expected = {"v5-preview": "v5", "v7-preview": "v7-preview.9"}
    for release in upstream:
        line = release.tag.rsplit(".", 1)[0]
        if line == "v6-preview":
            main = "v6-preview.69" if int(release.tag.rsplit(".", 1)[1]) <= 69 else "v6"
        else:
            main = expected.get(line, release.tag)
        nearest = database.nearest_main(release)
        assert nearest is not None and nearest.tag == main, release.tag


def test_layout_at_every_tag(facts: Path, database: Database, upstream: list[Release], orders: dict[str, int]) -> None:
    layouts = rows(facts / "zluda/layout_history.csv")
    checked = 0
    for release in upstream:
        for row in layouts:
            if not holds(row, release.order, orders):
                continue
            checked += 1
            layout = database.layout(release)
            values = database.capabilities(release)
            assert layout is not None
            assert ";".join(layout.redirects) == row["injected_and_redirected"]
            assert ";".join(layout.library_files) == row["library_files_in_zip"]
            assert (layout.launcher, layout.hip_runtime) == (row["launcher"], row["hip_runtime"])
            assert (layout.since, layout.until or "") == (row["since"], row["until"])
            assert " or ".join(layout.hipblaslt_names) == row["hipblaslt_names"]
            assert layout.hip_path_read == (row["hip_path_read"] == "yes")
            for column in ("cublas_create_needs_hipblaslt", "sets_torch_cudnn_v8_api_disabled", "zluda_cc"):
                assert (values[column].value, values[column].confidence) == (row[column], "high"), (release.tag, column)
    assert checked == len(upstream) - 2  # all but v3 and v4


def test_libraries_of_main_releases(facts: Path, database: Database) -> None:
    wanted = rows(facts / "zluda/libraries.csv")
    for tag in MAIN:
        found = {item.library: item for item in database.libraries(database.resolve_release(tag))}
        mine = [row for row in wanted if row["release"] == tag]
        assert set(found) == {row["library"] for row in mine}
        for row in mine:
            item = found[row["library"]]
            assert (";".join(item.dll_names), item.provided_how) == (row["dll_names"], row["provided_how"])
            if " " not in row["hip_dlls"]:
                assert ";".join("|".join(names) for names in item.hip_dlls) == row["hip_dlls"]


def test_proc_address_row_for_row(facts: Path, database: Database) -> None:
    wanted: dict[tuple[str, str], set[tuple[str, str, str]]] = defaultdict(set)
    for row in rows(facts / "zluda/proc_address.csv"):
        wanted[row["release"], row["name"]].add((row["flag"], row["min_cuda_version"], row["symbol"]))
    for (tag, name), expected in wanted.items():
        answer = database.aliases(name, database.resolve_release(tag))
        assert {(flag, str(item.min_cuda_version), item.symbol) for item in answer for flag in item.flags} == expected


def test_ptx_history_at_every_tag(
    facts: Path, database: Database, upstream: list[Release], orders: dict[str, int]
) -> None:
    history = rows(facts / "zluda/ptx_history.csv")
    for release in upstream:
        if release.is_main:
            continue
        expected = {(row["kind"], row["name"], row["form"]) for row in history if holds(row, release.order, orders)}
        assert {(form.kind, form.name, form.form) for form in database.ptx_forms(release)} == expected


def test_ptx_of_main_releases(facts: Path, database: Database) -> None:
    tables: dict[str, Any] = json.loads((facts / "zluda/ptx.json").read_text())
    for tag, table in tables.items():
        table = tables[table["same_as"]] if "same_as" in table else table
        release = database.resolve_release(tag)
        expected = {("opcode", name, form) for name, forms in table["opcodes"].items() for form in forms}
        expected |= {("special_register", name, name) for name in table["special_registers"]}
        expected |= {("directive", name, name) for name in table["directives"]}
        assert {(form.kind, form.name, form.form) for form in database.ptx_forms(release)} == expected
        rejects = {("parser", item["form"], _text(item["when"])) for item in table["parser_rejects"]}
        rejects |= {("later pass", item["what"], "") for item in table["later_pass_rejects"]}
        assert {(item.stage, item.what, item.when) for item in database.ptx_rejects(release)} == rejects


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return "; ".join(_text(item) for item in value)
    return "" if value is None else str(value)


@pytest.mark.parametrize(("file", "method"), [("modules.json", "module_loading"), ("launcher.json", "launcher")])
def test_words_on_main_releases(facts: Path, database: Database, file: str, method: str) -> None:
    tables: dict[str, Any] = json.loads((facts / "zluda" / file).read_text())
    for tag, table in tables.items():
        table = tables[table["same_as"]] if "same_as" in table else table
        expected: dict[str, str] = {}
        for key, value in table.items():
            if isinstance(value, dict):
                expected.update((f"{key}: {inner}", _text(text)) for inner, text in value.items())
            else:
                expected[key] = _text(value)
        assert getattr(database, method)(database.resolve_release(tag)) == expected


def test_notes(facts: Path, database: Database) -> None:
    notes = json.loads((facts / "zluda/notes.json").read_text())
    for topic in ("unprovided_libraries", "hip_sdk", "fork_renames_reported_by_users", "status_meaning"):
        assert database.notes(topic) == {key: _text(text) for key, text in notes[topic].items()}
    assert database.notes("nvapi_interfaces") == {"nvapi": _text(notes["nvapi_interfaces"]["v7-preview.9"])}
    for topic in ("v3_windows", "v5_windows", "absent_function", "built_for", "aborts_meaning"):
        assert database.notes(topic) == {"": notes[topic]}
    stored = {
        (row[0], tag): row[1]
        for row in database.query("SELECT key, text, releases FROM note WHERE topic = 'cuGetProcAddress'")
        for tag in row[2].split(";")
    }
    for tag, entries in notes["cuGetProcAddress"].items():
        if tag == "common":
            assert stored["common", ""] == entries
        else:
            assert {key: stored[key, tag] for key in entries} == {key: _text(value) for key, value in entries.items()}


def test_functions_not_on_windows(facts: Path, database: Database) -> None:
    for row in rows(facts / "zluda/functions_not_shipped_on_windows.csv"):
        found = database.not_on_windows(row["function"])
        assert any(
            (library, state) == (row["library"], STATES[row["status"]]) and row["release"] in tags
            for library, state, tags in found
        ), row


def test_sources_of_each_release(facts: Path, database: Database) -> None:
    sources = json.loads((facts / "zluda/sources.json").read_text())
    for tag, source in sources.items():
        if tag == "tools":
            continue
        stored = dict(database.query('SELECT "table", paths FROM zluda_source WHERE release = ?', (tag,)))
        assert {key: set(filter(None, text.split(";"))) for key, text in stored.items()} == {
            key: set(paths) for key, paths in source["files"].items()
        }
        assert database.resolve_release(tag).commit == source["commit"]
