"""The measured truth: what 72 real workloads called, and how they ended with two releases' gaps made to refuse."""

from __future__ import annotations

import re

import pytest
from truth_evidence import evidence, workloads

from zcheck.cli.data import coverage, rule_set
from zcheck.coverage import answer
from zcheck.coverage.measured import Measured
from zcheck.judge import judge
from zcheck.match import build_context, match
from zcheck.model.stack import Stack

WORKLOADS = workloads(coverage())
SIMULATED = {
    (row[0], row[1]): row[2:]
    for row in coverage().query(
        "SELECT zluda_release, workload, outcome, error, functions_refused FROM zluda_simulation"
    )
}
# Driver functions that were called and that no suite ties to a function, with the reason.
UNTIED = {
    "cuDevicePrimaryCtxRelease": "process exit, where results no longer matter",
    "cuLibraryUnload": "process exit, where results no longer matter",
    "cuCtxGetApiVersion": "made by the runtime in PyTorch programs; no function of the suites led to it",
}
# NCCL was seen inside one program only, never function by function; JAX's cuDNN loads modules in the name of others.
UNMEASURED_LIBRARIES = {"torch_nccl_single": r"cu(Mem|Stream|Kernel|Device).*"}
LOADED_BY_CUDNN = {"jax_conv", "jax_mlp_grad"}


def test_all_workloads_are_there() -> None:
    assert len(WORKLOADS) == 72
    assert len(SIMULATED) == 144


@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_every_driver_function_really_called_is_predicted(name: str) -> None:
    layers = WORKLOADS[name]
    libraries = {"runtime": "cudart", "driver_direct": "nvcuda"}
    calls = [
        (libraries.get(layer, "nvcuda" if layer.startswith("driver_from_code") else layer), function)
        for layer, functions in layers.items()
        if layer not in ("driver_total", "driver_under_zluda", "driver_under_zluda_init_only")
        for function in functions
    ]
    measured = Measured(coverage(), coverage().resolve_release("v6"))
    predicted = measured.needs(calls, measured.versions("13.0.96"))
    missed = set(layers["driver_under_zluda"]) - predicted - set(UNTIED)
    if name in UNMEASURED_LIBRARIES:
        missed = {each for each in missed if not re.fullmatch(UNMEASURED_LIBRARIES[name], each)}
    if name in LOADED_BY_CUDNN:
        missed -= {"cuLibraryLoadData", "cuLibraryGetKernel"}
    assert not missed


@pytest.mark.parametrize("release", ["v6", "v7-preview.9"])
@pytest.mark.parametrize("name", sorted(WORKLOADS))
def test_blocked_exactly_where_the_simulation_failed(release: str, name: str) -> None:
    facts = evidence(name, WORKLOADS[name])
    answers = answer(coverage(), Stack(release, "zluda-exe", "therock"), facts)
    context = build_context(facts, answers)
    findings = match(rule_set(), context)
    report = judge(facts, answers, findings, context.workload)
    outcome, error, refused = SIMULATED[release, name]
    assert (report.verdict == "blocked") == (outcome != "ok"), (outcome, error, refused)
    if outcome == "ok":
        return
    blocking = [f for f in findings if f.severity == "blocker" and f.reach in ("load", "init", "called")]
    text = " ".join(f"{f.message} {' '.join(f.functions)}" for f in blocking)
    gaps = {row[0] for row in coverage().query("SELECT function FROM workload_gap WHERE workload = ?", (name,))}
    known = gaps | set(re.findall(r"\b(?:cu|nv)\w+", f"{error} {refused}"))
    assert any(re.search(rf"\b{re.escape(function)}\b", text) for function in known), (text, known)


@pytest.mark.parametrize(
    ("release", "function", "state", "says"),
    [
        ("v6", "cudaMalloc", "implemented", ""),
        ("v6", "cudaMallocManaged", "returns-error", "cuMemAllocManaged"),
        ("v6", "cudaMallocAsync", "returns-error", "cuMemAllocAsync"),
        ("v6", "cudaHostRegister", "returns-error", "cuMemHostRegister_v2"),
        ("v6", "cudaLaunchHostFunc", "returns-error", "cuLaunchHostFunc"),
        ("v6", "cudaLaunchCooperativeKernel", "returns-error", "cuLaunchCooperativeKernel"),
        ("v6", "cudaCreateSurfaceObject", "returns-error", "cuSurfObjectCreate"),
        ("v6", "cudaMemcpy2DAsync", "returns-error", "cuMemcpy2DAsync_v2"),
        ("v6", "cudaMemcpy", "partial", "fails with Default"),
        ("v6", "cudaCreateTextureObject", "partial", "fails with array"),
        ("v6", "cudaStreamQuery", "returns-error", "cuStreamQuery"),
        ("v7-preview.9", "cudaStreamQuery", "implemented", ""),
        ("v6", "cudaMemcpyAsync_ptsz", "returns-error", "_ptsz"),
    ],
)
@pytest.mark.parametrize("version", ["12.4.127", "13.0.96", "12"])
def test_runtime_functions(release: str, function: str, state: str, says: str, version: str) -> None:
    measured = Measured(coverage(), coverage().resolve_release(release))
    answered = measured.runtime(function, measured.versions(version))
    if function.endswith("_ptsz") and version != "13.0.96":
        assert answered.confidence == "medium"  # measured with 13.0.96 only
    assert answered.state == state
    assert says in (answered.limit or "")


@pytest.mark.parametrize(
    ("version", "release", "fails"),
    [
        ("13.4.92", "v6", "private driver table 21318c60"),
        ("13.5.37", "v6", "private driver table 21318c60"),
        ("13.3.29", "v6", None),
        ("12.4.127", "v6", None),
        ("11.8.89", "v6", None),
        ("13.0.96", "v5", "cuCtxGetDevice_v2"),
        ("12.4.127", "v5", None),
        ("12.4.127", "v4", "cuGetExportTable"),
    ],
)
def test_start_of_the_runtime(version: str, release: str, fails: str | None) -> None:
    measured = Measured(coverage(), coverage().resolve_release(release))
    reason = measured.start_fails(measured.versions(version))
    assert (reason is None) == (fails is None)
    assert (fails or "") in (reason or "")


def test_an_unmeasured_version_takes_its_neighbours() -> None:
    measured = Measured(coverage(), coverage().resolve_release("v6"))
    assert measured.versions("12.4.127").exact
    assert measured.versions("12.4").versions == ("12.4.127",)
    neighbours = measured.versions("11.9")
    assert not neighbours.exact
    assert neighbours.versions == ("11.8.89",)  # its own major version before the next one


def test_cusolver_needs_two_cublas_functions_only_where_its_file_imports_them() -> None:
    measured = Measured(coverage(), coverage().resolve_release("v6"))
    own = measured.library("cusolver", "cusolverDnCreate", None)
    assert own is not None
    assert own.state == "returns-error"
    assert "cublasSetEnvironmentMode" in (own.limit or "")
    assert "cublasSetAtomicsMode" in (own.limit or "")
    older = measured.library("cusolver", "cusolverDnCreate", frozenset({"cublasCreate_v2"}))
    assert older is not None
    assert older.state == "unknown"
