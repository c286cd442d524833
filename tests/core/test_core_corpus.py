"""Real packages from bytes to verdict."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import corpus
from zcheck.cli.app import run

pytestmark = pytest.mark.corpus


def check(capsys: pytest.CaptureFixture[str], path: Path, *options: str) -> dict[str, Any]:
    """The JSON report on a path."""
    run([str(path), "-f", "json", *options])
    report: dict[str, Any] = json.loads(capsys.readouterr().out)
    return report


def states(report: dict[str, Any], library: str, stack: int = 0) -> dict[str, str]:
    """Function → state on one stack."""
    key = report["stacks"][stack]["id"]
    return {f["name"]: f["state"][key] for f in report["functions"] if f["library"] == library}


def ids(report: dict[str, Any], stack: int = 0) -> set[str]:
    return {f["id"] for f in report["stacks"][stack]["findings"] if f["severity"] != "note"}


def test_ctransformers_is_gemm_only(capsys: pytest.CaptureFixture[str]) -> None:
    dll = corpus.path("ctransformers") / "ctransformers/lib/cuda/ctransformers.dll"
    report = check(capsys, dll, "--zluda", "v6", "--zluda", "v4", "--zluda", "v5", "--zluda", "v7-preview.9")
    v6 = report["stacks"][0]
    assert v6["workload"]["gemm"] == "required"
    assert v6["workload"]["convolution"] == "not seen"
    assert states(report, "cublas") == {
        "cublasCreate_v2": "implemented",
        "cublasGetStatusString": "implemented",
        "cublasSetMathMode": "partial",
        "cublasSetStream_v2": "implemented",
        "cublasSgemm_v2": "implemented",
    }
    assert len(states(report, "cudart")) + len(states(report, "cublas")) == 33
    assert states(report, "cudart")["cudaMemcpy2DAsync"] == "returns-error"
    assert v6["verdict"] == "at-risk"
    assert "LAUNCH-RUNTIME-CANNOT-START" in ids(report, 1)
    assert report["stacks"][1]["verdict"] == "blocked"
    # v5 takes the first PTX (sm_52), where a third of the kernels only return; v6 takes the last (sm_70).
    assert "DEV-STUB-PTX" in ids(report, 2)
    assert states(report, "cublas", 2)["cublasGetStatusString"] == "ends-process"
    assert not ids(report, 3) & {"DEV-STUB-PTX", "DEV-NO-KERNEL-LOADS"}


def test_numpy_has_no_cuda(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("numpy"))
    applications = report["applications"]
    assert len(applications) >= 15
    assert {each["stacks"][0]["verdict"] for each in applications} == {"no-cuda"}


@pytest.mark.parametrize(
    ("package", "file", "release", "verdict"),
    [
        ("nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime/bin/cudart64_12.dll", "v6", "unknown"),
        ("nvidia-cuda-runtime-cu12", "nvidia/cuda_runtime/bin/cudart64_12.dll", "v4", "blocked"),
        ("nvidia-cuda-runtime-cu11", "nvidia/cuda_runtime/bin/cudart64_110.dll", "v6", "unknown"),
        ("nvidia-cuda-runtime-cu11", "nvidia/cuda_runtime/bin/cudart32_110.dll", "v6", "blocked"),
        ("nvidia-cuda-runtime", "nvidia/cu13/bin/x86_64/cudart64_13.dll", "v6", "blocked"),
        ("nvidia-cuda-runtime", "nvidia/cu13/bin/x86_64/cudart64_13.dll", "v5", "blocked"),
    ],
)
def test_runtimes(capsys: pytest.CaptureFixture[str], package: str, file: str, release: str, verdict: str) -> None:
    report = check(capsys, corpus.path(package) / file, "--zluda", release)
    assert report["stacks"][0]["verdict"] == verdict
    assert {"cuInit", "cuDeviceGetAttribute", "cuDevicePrimaryCtxRetain"} <= set(states(report, "nvcuda"))


def test_openmm_plugin_of_the_base_package(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("openmm-cuda-12"))
    for each in report["applications"]:
        assert each["stacks"][0]["workload"]["fft"] == "required"
        assert each["stacks"][0]["verdict"] == "blocked"
    driver = states(report["applications"][0], "nvcuda")
    assert len(driver) == 41
    assert driver["cuCtxSetCacheConfig"] == "returns-error"
    assert driver["cuLaunchKernel"] == "partial"


def test_dfttest2_delay_loads_cufft(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("vapoursynth-dfttest2-cuda"), "--zluda", "v6", "--zluda", "v5")
    assert len(states(report, "cufft")) == 8
    assert set(states(report, "cufft").values()) == {"returns-error"}
    assert {f["kind"] for f in report["functions"] if f["library"] == "cufft"} == {"delay"}
    assert report["stacks"][0]["verdict"] == "blocked"
    assert report["stacks"][1]["verdict"] == "at-risk"  # v5 leaves NVIDIA's cuFFT in place


def test_bitsandbytes_variants_are_judged_apart(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("bitsandbytes"))
    by_name = {Path(each["target"]).name: each for each in report["applications"]}
    cuda = {name: each for name, each in by_name.items() if "_cuda" in name}
    assert len(cuda) == 7
    assert {each["stacks"][0]["workload"]["gemm"] for each in cuda.values()} == {"required"}
    for name, each in cuda.items():
        runtime = {Path(edge["to"]).name for edge in each["edges"] if "cudart" in edge["to"]}
        assert len(runtime) <= 1, name  # never the union of the variants
    for each in cuda.values():
        assert any("alternatives" in text and "libbitsandbytes_rocm72.dll" in text for text in each["assumptions"])
    rocm = [each for name, each in by_name.items() if "_rocm" in name]
    assert len(rocm) == 3
    assert {each["stacks"][0]["verdict"] for each in rocm} == {"no-cuda"}


def test_ctranslate2_loads_cublas_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("ctranslate2"))
    dynamic = [f["name"] for f in report["functions"] if f["library"] == "cublas" and f["kind"] == "dynamic"]
    assert len(dynamic) == 9
    assert not [f for f in report["functions"] if f["library"] in ("cudart", "nvcuda") and f["kind"] == "dynamic"]
    assert any("static-runtime" in text for text in report["evidence"])
    assert report["stacks"][0]["workload"]["gemm"] == "required"


def test_openmm_for_cuda_12_and_13_need_the_same_of_the_driver(capsys: pytest.CaptureFixture[str]) -> None:
    twelve, thirteen = (
        check(capsys, corpus.path(name))["applications"][0] for name in ("openmm-cuda-12", "openmm-cuda-13")
    )
    assert not any(f["kind"] == "import" for f in thirteen["functions"] if f["library"] == "nvcuda")
    # CUDA 13's headers turn cuCtxCreate into its fourth version.
    rename = {"cuCtxCreate_v4": "cuCtxCreate_v2"}
    assert {rename.get(name, name) for name in states(thirteen, "nvcuda")} == set(states(twelve, "nvcuda"))
    assert len(states(thirteen, "nvcuda")) == 41


@pytest.mark.parametrize(
    ("package", "library", "verdict"),
    [
        ("drjit", "optix", "at-risk"),
        ("vapoursynth-vszipcu", "nvrtc", "at-risk"),
        ("@ffmpeg-installer/win32-ia32", "nvcuvid", "blocked"),
    ],
)
def test_by_names_only(capsys: pytest.CaptureFixture[str], package: str, library: str, verdict: str) -> None:
    report = check(capsys, corpus.path(package))
    assert {f["kind"] for f in report["functions"]} <= {"dynamic", "mention"}
    assert library in {f["library"] for f in report["functions"]}
    assert report["stacks"][0]["verdict"] == verdict


def test_hardware_monitor_asks_nvml_and_nvapi(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("hardwaremonitor"))
    by_name = {Path(each["target"]).name: each for each in report["applications"]}
    own = by_name["LibreHardwareMonitorLib.dll"]
    assert {f["library"] for f in own["functions"]} == {"nvml", "nvapi"}
    assert own["stacks"][0]["verdict"] == "at-risk"
    assert by_name["HidSharp.dll"]["stacks"][0]["verdict"] == "no-cuda"


def test_the_hip_twin_of_a_cuda_plugin(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("vapoursynth-dfttest2-hip"))
    plugin = next(each for each in report["applications"] if each["target"].endswith("dfttest2_hip.dll"))
    assert plugin["stacks"][0]["verdict"] == "no-cuda"
    assert {f["id"] for f in plugin["stacks"][0]["findings"]} == {"OWN-PATH"}


def test_arm64(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("@node-llama-cpp/win-arm64"))
    stacks = [each["stacks"][0] for each in report.get("applications", [report])]
    assert {stack["verdict"] for stack in stacks} <= {"no-cuda", "blocked"}


@pytest.mark.slow
def test_xgboost_has_its_runtime_linked_in(capsys: pytest.CaptureFixture[str]) -> None:
    report = check(capsys, corpus.path("xgboost"), "--zluda", "v6", "--zluda", "v5")
    assert any("static-runtime" in text and "12." in text for text in report["evidence"])
    assert sum(each["containers"] for each in report["device_code"]) == 63
    assert {"DEV-MODULES-LOST", "DEV-KERNELS-DROPPED"} & (ids(report) | ids(report, 1))
