"""What lies beside a program, what it is itself, and how it is started: none of it may be taken for "no gap"."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

import corpus
from pe_builder import build
from zcheck.cli.app import run

SAMPLES = Path(__file__).resolve().parents[2] / "samples"


def report(capsys: pytest.CaptureFixture[str], target: Path, *options: str) -> dict[str, Any]:
    assert run(["check", str(target), "-f", "json", *options]) in (0, 1, 3)
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def stack_of(capsys: pytest.CaptureFixture[str], target: Path, *options: str) -> dict[str, Any]:
    (stack,) = report(capsys, target, *options)["stacks"]
    found: dict[str, Any] = stack
    return found


def plugin(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(build(dll=True, imports={"cublas64_12.dll": ["cublasSgemm_v2"]}, exports=["run"]))


# --- libraries beside a program --------------------------------------------------------------------------------------


def test_a_plugin_with_cuda_keeps_its_program_from_no_cuda(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "app.exe")
    assert stack_of(capsys, tmp_path / "app.exe")["verdict"] == "no-cuda"
    plugin(tmp_path / "plugins" / "gpu.dll")
    stack = stack_of(capsys, tmp_path / "app.exe")
    assert stack["verdict"] == "unknown"
    (finding,) = [found for found in stack["findings"] if found["id"] == "LIMIT-NOT-REACHED"]
    assert "plugins/gpu.dll" in finding["message"]


def test_a_plugin_beside_a_program_with_cuda_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "gemm.exe", tmp_path)
    plugin(tmp_path / "plugins" / "gpu.dll")
    found = report(capsys, tmp_path / "gemm.exe")
    assert "plugins/gpu.dll" in [skipped["path"] for skipped in found["skipped"]]
    assert found["stacks"][0]["verdict"] != "unknown"


def test_a_plugin_of_another_program_says_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "app.exe")
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "other.exe")
    (tmp_path / "tool").mkdir()
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "tool" / "tool.exe")
    plugin(tmp_path / "tool" / "gpu.dll")
    assert stack_of(capsys, tmp_path / "app.exe")["verdict"] == "no-cuda"


def test_a_library_of_cuda_alone_is_no_plugin(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copy(SAMPLES / "plain.exe", tmp_path / "app.exe")
    (tmp_path / "cudart64_12.dll").write_bytes(
        build(dll=True, imports={"KERNEL32.dll": ["Sleep"]}, exports=["cudaFree"])
    )
    assert stack_of(capsys, tmp_path / "app.exe")["verdict"] == "no-cuda"


# --- CUDA's own libraries --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["cudnn64_9.dll", "cublas64_12.dll", "nvcuda.dll"])
def test_a_cuda_library_itself_is_not_judged(tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str) -> None:
    imports = {"nvcuda.dll": ["cuInit"]} if name != "nvcuda.dll" else {"KERNEL32.dll": ["Sleep"]}
    (tmp_path / name).write_bytes(build(dll=True, imports=imports, exports=["run"]))
    stack = stack_of(capsys, tmp_path / name)
    assert stack["verdict"] == "unknown"
    assert "LIMIT-VENDOR-LIBRARY" in {found["id"] for found in stack["findings"]}


# --- files placed beside the program ---------------------------------------------------------------------------------


def test_the_runtime_does_not_see_a_driver_beside_the_program(capsys: pytest.CaptureFixture[str]) -> None:
    stack = stack_of(capsys, SAMPLES / "gemm.exe", "--launch-mode", "staged")
    assert stack["verdict"] == "blocked"
    assert stack["findings"][0]["id"] == "LAUNCH-STAGED-RUNTIME"
    assert stack_of(capsys, SAMPLES / "driver.exe", "--launch-mode", "staged")["verdict"] == "likely"


@pytest.mark.corpus
@pytest.mark.parametrize("package", ["xgboost", "ctranslate2"])
def test_neither_does_a_runtime_that_is_linked_in(capsys: pytest.CaptureFixture[str], package: str) -> None:
    root = corpus.path(package)
    for options, finding in (
        (("--launch-mode", "staged"), "LAUNCH-STAGED-RUNTIME"),
        (("--zluda", "v4"), "LAUNCH-RUNTIME-CANNOT-START"),
    ):
        stack = stack_of(capsys, root, *options)
        assert stack["verdict"] == "blocked"
        assert finding in {found["id"] for found in stack["findings"]}


# --- what is printed to be typed -------------------------------------------------------------------------------------


@pytest.mark.corpus
def test_a_command_names_the_folder_of_a_module(capsys: pytest.CaptureFixture[str]) -> None:
    stack = stack_of(capsys, corpus.path("xgboost"))
    told = [text for finding in stack["findings"] for text in finding["fix"] if "zcheck kernels" in text]
    assert told and all("zcheck kernels xgboost/lib/xgboost.dll" in text for text in told)
