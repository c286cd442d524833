"""``zcheck db`` as a person meets it."""

from __future__ import annotations

import importlib
import json
import sqlite3
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from zcheck.cli.db import app
from zcheck.errors import UsageError


@pytest.fixture(autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path_factory.getbasetemp() / "db-cache"
    monkeypatch.setattr(importlib.import_module("zcheck.coverage.locate"), "cache_folder", lambda: folder)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(app, list(arguments))


def test_show_prints_history_hip_cuda_and_sources() -> None:
    done = run("show", "cublasDgemm_v2")
    assert done.exit_code == 0
    lines = done.stdout.splitlines()
    assert lines[2].startswith("cublas\tv5-preview.66 or earlier to now\treturns-error\t")
    assert "vosen/ZLUDA@" in lines[2]
    assert "hipblasDgemm (since 1.8.2" in done.stdout
    assert "cublas64_12.dll 12.4.5.8" in done.stdout
    assert "workload: gemm" in done.stdout


def test_show_on_a_terminal_is_a_table_with_whole_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "200")
    done = run("show", "cublasGemmEx")
    assert "\x1b[" in done.stdout and "compute type 16F 32F 64F only" in done.stdout


def test_show_as_json_is_the_same_each_time() -> None:
    first, second = run("show", "cublasGemmEx", "--format", "json"), run("show", "cublasGemmEx", "--format", "json")
    assert first.stdout == second.stdout
    facts = json.loads(first.stdout)
    assert facts["history"][1]["limit"] == "compute type 16F 32F 64F only"
    assert facts["history"][1]["until"] == "v5-preview.142"
    assert facts["hip"]["name"] == "hipblasGemmEx"
    assert {item["library"] for item in facts["cuda"]} == {"cublas"}


def test_show_suggests_near_names() -> None:
    done = run("show", "cublasDgem_v2")
    assert isinstance(done.exception, UsageError)
    assert done.exception.exit_code == 2
    assert "cublasDgemm_v2" in done.exception.message


def test_show_of_nonsense_suggests_nothing() -> None:
    for name in ("", "%", "_", "'; DROP TABLE release; --", "nvml\x00"):
        done = run("show", name)
        assert isinstance(done.exception, UsageError), name


def test_releases() -> None:
    done = json.loads(run("releases", "--format", "json").stdout)
    assert len(done["releases"]) == 168 + 2 + 23
    assert done["aliases"]["latest"] == "v6"
    assert [row["tag"] for row in done["releases"] if not row["read"]] == [f"v5-preview.{n}" for n in range(43, 66)]
    assert "v5-preview.43\t\t\tnot read: nothing is known" in run("releases").stdout


def test_coverage_counts() -> None:
    done = json.loads(run("coverage", "--zluda", "v6", "--zluda", "v5-preview.50", "--format", "json").stdout)
    assert done["releases"]["v6"]["cublas"] == {
        "ends-process": 2,
        "implemented": 13,
        "partial": 4,
        "returns-error": 511,
    }
    assert done["releases"]["v5-preview.50"] == {}
    assert "v5-preview.50 was not read" in run("coverage", "--zluda", "v5-preview.50").stdout
    assert isinstance(run("coverage", "--zluda", "v66").exception, UsageError)


def test_build_writes_a_whole_database(tmp_path: Path) -> None:
    target = tmp_path / "made.sqlite"
    assert run("build", "--output", str(target)).exit_code == 0
    connection = sqlite3.connect(target)
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert isinstance(run("build", "--output", str(target)).exception, UsageError)
    assert isinstance(run("build", "--tables", str(tmp_path / "none")).exception, UsageError)


def test_build_leaves_nothing_behind_when_a_table_is_broken(tmp_path: Path) -> None:
    (tmp_path / "tables").mkdir()
    target = tmp_path / "made.sqlite"
    assert run("build", "--tables", str(tmp_path / "tables"), "--output", str(target)).exit_code != 0
    assert not target.exists()
