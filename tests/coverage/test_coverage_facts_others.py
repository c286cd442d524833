"""Every row of the HIP, CUDA and measured facts survives in the compiled database."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

import pytest

from zcheck.coverage.database import Database

# Facts that stand in the database column by column: file of facts, SQLite table.
VERBATIM = [
    ("hip/hipify.csv", "hipify"),
    ("hip/hipify_types.csv", "hipify_type"),
    ("hip/gpus.csv", "gpu"),
    ("hip/gfx_capabilities.csv", "gfx"),
    ("hip/library_map.csv", "library_map"),
    ("hip/windows_export_gaps_6_4.csv", "hip_export_gap"),
    ("hip/coverage_6_4.csv", "hipify_count"),
    ("hip/cudart_internal.csv", "cudart_internal"),
    ("cuda_dll_deps.csv", "cuda_dll_dep"),
    ("nvidia_device_code.csv", "cuda_device_code"),
    ("cuda_truth/library_to_driver.csv", "library_to_driver"),
    ("cuda_truth/library_to_library.csv", "library_to_library"),
    ("cuda_truth/library_simulated_v6.csv", "library_simulated_v6"),
    ("cuda_truth/private_tables.csv", "private_table"),
    ("cuda_truth/private_table_refusal.csv", "private_table_refusal"),
    ("cuda_truth/runtime_blockers.csv", "runtime_blocker"),
    ("cuda_truth/workload_gaps.csv", "workload_gap"),
    ("cuda_truth/zluda_simulation.csv", "zluda_simulation"),
]
# Facts whose CUDA versions were drawn together into one row.
COLLAPSED = [
    ("runtime_to_driver", "runtime_to_driver"),
    ("runtime_variants", "runtime_variant"),
    ("runtime_functions_measured", "runtime_measured"),
    ("runtime_first_call", "runtime_first_call"),
    ("runtime_simulated_v6", "runtime_simulated_v6"),
    ("cudart_requests", "cudart_request"),
]


def rows(path: Path) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def selected(database: Database, table: str, columns: list[str]) -> list[tuple[str, ...]]:
    names = ", ".join(f'"{column}"' for column in columns)
    return database.query(f'SELECT {names} FROM "{table}" ORDER BY rowid')


@pytest.mark.parametrize(("file", "table"), VERBATIM)
def test_verbatim_tables(facts: Path, database: Database, file: str, table: str) -> None:
    wanted = rows(facts / file)
    assert selected(database, table, list(wanted[0])) == [tuple(row.values()) for row in wanted]


@pytest.mark.parametrize(("file", "table"), COLLAPSED)
def test_collapsed_tables(facts: Path, database: Database, file: str, table: str) -> None:
    wanted = rows(facts / f"cuda_truth/{file}.csv")
    columns = [column for column in wanted[0] if column != "cuda_version"]
    spread = [
        (*row[:-1], version)
        for row in selected(database, table, [*columns, "cuda_versions"])
        for version in row[-1].split(";")
    ]
    expected = [(*(row[column] for column in columns), row["cuda_version"]) for row in wanted]
    assert sorted(spread) == sorted(expected)


def test_hip_sdk_rows(facts: Path, database: Database) -> None:
    for row in rows(facts / "hip/hip_sdk_windows.csv"):
        if row["component"] == "whole SDK":
            assert (row["version"] in database.hip_sdk_versions()) == (row["included"] == "yes"), row
            continue
        component = next(c for c in database.hip_sdk(row["version"]).components if c.name == row["component"])
        included = row["included"] if row["included"] in ("yes", "no") else "unknown"
        assert (component.included, ";".join(component.dlls)) == (included, row["dll_names"])
        assert (component.confidence or "", component.notes, component.source) == (
            row["dll_confidence"],
            row["notes"],
            row["evidence"],
        )


def test_hip_exports(facts: Path, database: Database) -> None:
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows(facts / "hip/hip_exports_windows.csv"):
        wanted[row["version"], row["dll"]].add(row["function"])
    for (version, dll), names in wanted.items():
        assert database.hip_exports(version, dll) == names
    assert set(database.hip_export_versions()) == {(dll, version) for version, dll in wanted}
    evidence = {(row["dll"], row["version"], row["evidence"]) for row in rows(facts / "hip/hip_exports_windows.csv")}
    assert set(database.query("SELECT dll, version, source FROM hip_export_file")) == evidence


def test_hip_api_versions(facts: Path, database: Database) -> None:
    wanted: dict[tuple[str, str], set[str]] = defaultdict(set)
    for row in rows(facts / "hip/hip_api_by_version.csv"):
        wanted[row["library"], row["function"]].add(row["rocm_version"])
    stored = {
        (a, b): set(c.split(";")) for a, b, c in database.query("SELECT library, function, rocm_versions FROM hip_api")
    }
    assert stored == wanted


def test_cuda_exports(facts: Path, database: Database) -> None:
    wanted = {
        (r["cuda_major"], r["library"], r["dll"], r["version"], r["function"]) for r in rows(facts / "cuda_exports.csv")
    }
    stored = database.query(
        "SELECT f.cuda_major, e.library, f.dll, f.version, e.function FROM cuda_export AS e"
        " JOIN cuda_file AS f ON f.id = CAST(e.file AS TEXT)"
    )
    assert set(stored) == wanted and len(stored) == len(wanted)


def test_cuda_export_counts(facts: Path, database: Database) -> None:
    for row in rows(facts / "cuda_export_counts.csv"):
        stored = database.query(
            "SELECT cuda_major, library, version, dll, size, named_exports, forwarded, ordinal_only, machine"
            " FROM cuda_file WHERE dll = ? AND version = ? AND cuda_major = ?",
            (row["dll"], row["version"], row["cuda_major"]),
        )
        assert stored == [tuple(row.values())]


def test_fingerprints(facts: Path, database: Database) -> None:
    wanted = json.loads((facts / "cudart_fingerprint.json").read_text())
    everything = {name for names in wanted.values() for name in names}
    found = database.fingerprint(everything)
    assert {(name, file) for name, files in found.items() for file in files} == {
        (name, file) for file, names in wanted.items() for name in names
    }


def test_workloads(facts: Path, database: Database) -> None:
    files = sorted((facts / "cuda_truth/workloads").glob("*.json"))
    assert {row[0] for row in database.query("SELECT workload FROM workload")} == {file.stem for file in files}
    for file in files:
        workload = json.loads(file.read_text())
        stored = dict(database.query("SELECT layer, functions FROM workload WHERE workload = ?", (file.stem,)))
        for layer, names in workload["layers"].items():
            assert stored.get(layer, "").split() == names, (file.stem, layer)
        assert stored.get("driver_under_zluda", "").split() == workload["driver_under_zluda"]


def test_every_dll_of_the_export_tables_is_recognised(facts: Path, database: Database) -> None:
    """By the library of the facts, but for the profiler's helpers, codec plug-ins, tools and Python modules."""
    for row in rows(facts / "cuda_export_counts.csv"):
        if row["dll"].startswith("nvperf_"):
            assert database.library_of(row["dll"]) == "nvperf"
        elif row["dll"] != "checkpoint.dll" and not row["dll"].endswith((".exe", ".pyd", "_ext_0.dll")):
            assert database.library_of(row["dll"].upper()) == row["library"], row["dll"]


def test_zluda_files_are_recognised(facts: Path, database: Database) -> None:
    for row in rows(facts / "zluda/libraries.csv"):
        if row["library"] == "nvcuda32":
            continue
        for name in row["dll_names"].split(";"):
            assert database.library_of(name) == row["library"], name
