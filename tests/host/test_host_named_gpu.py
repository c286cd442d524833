"""``--gpu`` without a PC: what the tables say of the target bears on the verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from zcheck.cli.app import run

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def stack_of(capsys: pytest.CaptureFixture[str], program: str, *options: str) -> dict[str, Any]:
    assert run(["check", str(SAMPLES / program), "-f", "json", *options]) in (0, 1)
    (stack,) = json.loads(capsys.readouterr().out)["stacks"]
    found: dict[str, Any] = stack
    return found


@pytest.mark.parametrize(
    ("gpu", "verdict", "finding"),
    [
        ("gfx803", "blocked", "HOST-GPU-UNSUPPORTED"),
        ("gfx906", "blocked", "HOST-GPU-UNSUPPORTED"),
        ("gfx90a", "blocked", "HOST-GPU-UNSUPPORTED"),
        ("gfx1010", "needs-setup", "HOST-TENSILE-MISSING"),
        ("gfx1036", "needs-setup", "HOST-TENSILE-MISSING"),
        ("gfx1103", "needs-setup", "HOST-TENSILE-MISSING"),
        ("gfx1100", "likely", ""),
        ("gfx1200", "likely", ""),
    ],
)
def test_the_target_decides(capsys: pytest.CaptureFixture[str], gpu: str, verdict: str, finding: str) -> None:
    stack = stack_of(capsys, "gemm.exe", "--gpu", gpu)
    assert stack["verdict"] == verdict
    serious = [found["id"] for found in stack["findings"] if found["severity"] != "note"]
    assert serious == ([finding] if finding else [])


def test_kernels_of_rocblas_matter_to_programs_that_use_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert stack_of(capsys, "driver.exe", "--gpu", "gfx1103")["verdict"] == "likely"


def test_what_was_read_of_one_sdk_is_not_said_of_another(capsys: pytest.CaptureFixture[str]) -> None:
    ids = {found["id"] for found in stack_of(capsys, "gemm.exe", "--gpu", "gfx1103", "--hip-sdk", "7.2")["findings"]}
    assert "HOST-TENSILE-MISSING" not in ids


def test_the_old_release_that_starts_on_old_gpus_says_risk(capsys: pytest.CaptureFixture[str]) -> None:
    stack = stack_of(capsys, "driver.exe", "--gpu", "gfx803", "--zluda", "lshqqytiger-3.9.5", "--hip-sdk", "5.7")
    assert "HOST-GPU-OFF-LIST" in {found["id"] for found in stack["findings"]}
    assert "HOST-GPU-UNSUPPORTED" not in {found["id"] for found in stack["findings"]}


def test_a_target_that_no_table_knows_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert run([str(SAMPLES / "gemm.exe"), "--gpu", "gfx9999"]) == 2
    assert "gfx9999" in capsys.readouterr().err
