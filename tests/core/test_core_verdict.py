"""Verdicts: the fine points of design section 3, each with the evidence that decides it."""

from __future__ import annotations

import msgspec
import pytest

from zcheck.cli.data import coverage, rule_set
from zcheck.coverage import answer
from zcheck.errors import UsageError
from zcheck.judge import exit_code, judge
from zcheck.match import build_context, match
from zcheck.match.loader import parse_given
from zcheck.model.report import StackReport


def judged(given: str, zluda: str = "v6", hip_sdk: str = "6.4", **stack: str) -> StackReport:
    """The verdict on evidence lines."""
    extra = "".join(f", {key} {value}" for key, value in stack.items())
    evidence, chosen = parse_given(f"{given}\nstack zluda {zluda}, hip_sdk {hip_sdk}{extra}", "test")
    answers = answer(coverage(), chosen, evidence)
    context = build_context(evidence, answers)
    return judge(evidence, answers, match(rule_set(), context), context.workload)


def ids(report: StackReport) -> set[str]:
    return {finding.id for finding in report.findings if finding.severity != "note"}


GEMM = (
    "entry app.exe imports cudart64_12.dll!cudaMalloc; found bundle\n"
    "entry app.exe imports cublas64_12.dll!cublasSgemm_v2"
)
CONV = "entry app.exe imports cudnn64_9.dll!cudnnConvolutionForward"


@pytest.mark.parametrize(
    ("zluda", "verdict", "why"),
    [
        # The runtime asks v4's driver for tables and functions that it does not have.
        ("v4", "blocked", {"LAUNCH-RUNTIME-CANNOT-START", "LIB-TOOLKIT-DLL-MISSING"}),
        # v5's launcher redirects the driver only; its cublas.dll has to be placed by hand.
        ("v5", "needs-setup", {"LIB-NOT-PLACED"}),
        # From v6-preview.28 on the launcher puts cublas64_12 in place, and up to .57 without hipBLASLt.
        ("v6-preview.55", "likely", set()),
        ("v6", "likely", set()),
        ("v7-preview.9", "likely", set()),
    ],
)
def test_one_gemm_program_on_five_releases(zluda: str, verdict: str, why: set[str]) -> None:
    report = judged(GEMM, zluda)
    assert report.verdict == verdict
    assert why <= ids(report)
    if not why:
        assert not ids(report)


@pytest.mark.parametrize(
    ("function", "verdicts"),
    [
        # First release with a thing, as the tables have it.
        ("cublas64_11.dll!cublasSgemm_v2; found bundle", {"v6-preview.55": "at-risk", "v6": "likely"}),
        ("nvcuda.dll!cuDeviceGetPCIBusId", {"v6-preview.55": "at-risk", "v7-preview.9": "likely"}),
        ("nvcuda.dll!cuTexObjectCreate", {"v6-preview.55": "at-risk", "v6": "likely"}),
        ("cudnn64_8.dll!cudnnConvolutionForward", {"v6-preview.55": "blocked", "v6": "blocked"}),
    ],
)
def test_answers_turn_with_the_release(function: str, verdicts: dict[str, str]) -> None:
    assert {zluda: judged(f"entry app.exe imports {function}", zluda).verdict for zluda in verdicts} == verdicts


def test_convolution_alone_blocks_without_miopen_and_not_with_it() -> None:
    assert judged(CONV).verdict == "blocked"
    assert "DNN-CONV-NO-MIOPEN" in ids(judged(CONV))
    assert judged(CONV, hip_sdk="therock").verdict == "likely"


def test_convolution_beside_gemm_is_a_risk_only() -> None:
    report = judged(f"{CONV}\n{GEMM}")
    assert report.verdict == "at-risk"
    assert report.workload["convolution"] == report.workload["gemm"] == "optional"


def test_one_function_of_a_family_that_works_leaves_the_refused_one_a_risk() -> None:
    both = "entry app.exe imports cublas64_12.dll!cublasSgemm_v2\nentry app.exe imports cublas64_12.dll!cublasDgemm_v2"
    only = "entry app.exe imports cublas64_12.dll!cublasDgemm_v2"
    assert judged(both).verdict == "at-risk"
    assert judged(only).verdict == "blocked"


def test_a_framework_imports_everything() -> None:
    framework = "\n".join(
        f"framework torch_cuda.dll imports {name}"
        for name in (
            "cudnn64_9.dll!cudnnConvolutionForward",
            "cufft64_11.dll!cufftExecC2C",
            "cublas64_12.dll!cublasSgemm_v2",
        )
    )
    alone = judged(framework)
    assert alone.verdict == "at-risk"
    assert alone.workload["convolution"] == "unknown"
    trainer = judged(f"{framework}\nentry ppo.exe imports torch_cpu.dll!at::_ops::addmm::call; found bundle")
    assert trainer.verdict == "likely"
    assert trainer.workload["convolution"] == "not seen"
    assert trainer.workload["gemm"] == "required"
    image = judged(f"{framework}\nentry image.exe imports torch_cpu.dll!at::_ops::conv2d::call; found bundle")
    assert image.verdict == "blocked"
    assert {f.id for f in image.findings if f.reach == "called"} == {"DNN-CONV-NO-MIOPEN"}


def test_mentions_are_notes() -> None:
    report = judged("entry app.exe imports nvcuda.dll!cuInit\nentry app.exe mentions nvcuda.dll!cuMemAllocAsync")
    assert report.verdict == "likely"
    assert all(f.severity == "note" for f in report.findings)


def test_machines() -> None:
    x86 = "file game.exe role entry; machine x86\nentry game.exe imports nvcuda.dll!cuInit"
    assert judged(x86).verdict == "blocked"
    assert judged(x86, "v7-preview.9").verdict == "likely"
    arm = x86.replace("x86", "arm64")
    assert judged(arm, "v7-preview.9").verdict == "blocked"
    assert judged("file game.exe role entry; machine arm64").verdict == "no-cuda"


def test_limits_give_unknown_only_where_nothing_was_read() -> None:
    packed = "limitation packed app.exe; note UPX"
    assert judged(packed).verdict == "unknown"
    # A packer leaves one import of each DLL or so: that it is harmless says nothing of the rest.
    assert judged(f"{packed}\nentry app.exe imports nvcuda.dll!cuInit").verdict == "unknown"
    assert judged(f"{packed}\nmodule own.dll imports nvcuda.dll!cuInit").verdict == "likely"
    assert judged(f"{packed}\nentry app.exe imports nvcuda.dll!cuGraphicsD3D11RegisterResource").verdict == "blocked"
    assert judged("file app.exe role entry").verdict == "no-cuda"


def test_recorded_runs() -> None:
    run = "run passed; zluda v6; hip_sdk 6.4; gpu gfx1100; date 2026-10-01"
    assert judged(f"{GEMM}\n{run}", gpu="gfx1100").verdict == "verified"
    assert judged(f"{GEMM}\n{run}", gpu="gfx1200").verdict == "likely"
    assert judged(f"{GEMM}\n{run}").verdict == "likely"  # of no GPU in particular nothing was recorded
    assert judged(f"{GEMM}\n{run.replace('passed', 'failed')}", gpu="gfx1100").verdict == "blocked"
    risky = judged(f"entry app.exe imports nvcuda.dll!cuMemAllocAsync\n{run}", gpu="gfx1100")
    assert risky.verdict == "verified"
    assert any(finding.severity == "blocker" for finding in risky.findings)  # it stays listed
    assert judged(f"{CONV}\n{run}", gpu="gfx1100").verdict == "blocked"  # a sure blocker wins


def test_stub_libraries_only_where_they_are_put_in_place() -> None:
    fft = "entry app.exe imports cufft64_11.dll!cufftExecC2C; found bundle"
    assert ids(judged(fft)) == {"LIB-STUB-CUFFT"}
    assert ids(judged(fft, "v5")) == {"LIB-PASSED-THROUGH"}
    assert ids(judged(fft, "v5", launch_mode="staged")) == {"LIB-STUB-CUFFT"}


def test_hip_sdk_without_hipblaslt() -> None:
    blas = "entry app.exe imports cublas64_12.dll!cublasSgemm_v2"
    assert judged(blas, hip_sdk="6.2").verdict == "blocked"
    assert judged(blas, "v6-preview.55", hip_sdk="6.2").verdict == "likely"
    assert judged(blas, hip_sdk="6.4.1").verdict == "blocked"
    assert judged(blas, hip_sdk="6.4.2").verdict == "likely"


def test_never_promises_more_than_predicted_loadable() -> None:
    for given in (GEMM, CONV, "file app.exe role entry"):
        report = judged(given)
        words = f"{report.headline} {' '.join(report.actions)}".lower()
        assert "will work" not in words
        assert "supported" not in words.replace('"not supported"', "")
        if report.verdict in ("likely", "needs-setup"):
            assert "predicted loadable" in words


def test_an_unknown_release_is_named() -> None:
    with pytest.raises(UsageError, match="v66"):
        judged(GEMM, "v66")


@pytest.mark.parametrize(
    ("verdicts", "level", "code"),
    [
        (("blocked", "likely"), "blocker", 1),
        (("at-risk",), "blocker", 0),
        (("at-risk",), "risk", 1),
        (("needs-setup",), "risk", 0),
        (("needs-setup",), "setup", 1),
        (("unknown", "blocked"), "blocker", 1),
        (("unknown", "likely"), "blocker", 3),
        (("unknown",), "never", 3),
        (("blocked",), "never", 0),
        (("verified", "no-cuda", "likely"), "setup", 0),
    ],
)
def test_exit_codes(verdicts: tuple[str, ...], level: str, code: int) -> None:
    plain = judged("file app.exe role entry")
    reports = [msgspec.structs.replace(plain, verdict=verdict) for verdict in verdicts]
    assert exit_code(reports, level) == code  # type: ignore[arg-type]


def test_names_looked_up_or_modules_loaded_later_do_not_block_for_their_only_family() -> None:
    sure = "entry app.exe imports cufft64_11.dll!cufftExecC2C"
    assert judged(sure).verdict == "blocked"
    assert judged(sure.replace("imports", "looks-up")).verdict == "at-risk"
    assert judged("module plug.dll imports cufft64_11.dll!cufftExecC2C; load later").verdict == "at-risk"
    # shown by something else, it is called all the same
    assert judged(f"workload fft required; by script\n{sure.replace('imports', 'looks-up')}").verdict == "blocked"


def test_two_copies_of_a_replaced_library_are_both_not_loaded() -> None:
    copies = """file lib/cublas64_12.dll role vendor
vendor lib/cublas64_12.dll imports nvcuda.dll!cuNoSuchFunction
vendor x/cublas64_12.dll imports nvcuda.dll!cuNoSuchFunction"""
    assert judged(f"{copies}\nentry app.exe imports cublas64_12.dll!cublasSgemm_v2").verdict == "likely"


@pytest.mark.parametrize("release", ["v5-preview.43", "v5-preview.65"])
def test_of_a_release_whose_files_were_never_read_nothing_is_said(release: str) -> None:
    report = judged("entry app.exe imports nvcuda.dll!cuInit", zluda=release)
    assert report.verdict == "unknown" and "never read" in report.headline


def test_a_run_counts_for_its_launch_mode_and_the_last_of_a_day_wins() -> None:
    run = "run passed; zluda v6; hip_sdk 6.4; gpu gfx1100; date 2026-10-01"
    alone = "entry app.exe imports cublas64_12.dll!cublasGemmEx"  # the runtime does not see files beside the program
    assert judged(f"{alone}\n{run}", gpu="gfx1100", launch_mode="staged").verdict == "likely"
    assert judged(f"{alone}\n{run}; launch_mode staged", gpu="gfx1100", launch_mode="staged").verdict == "verified"
    failed = run.replace("passed", "failed")
    assert judged(f"{GEMM}\n{failed}\n{run}", gpu="gfx1100").verdict == "verified"
    assert judged(f"{GEMM}\n{run}\n{failed}", gpu="gfx1100").verdict == "blocked"


@pytest.mark.parametrize("machine", ["x86", "arm64"])
def test_a_process_that_the_launcher_cannot_enter_is_blocked_however_it_names_cuda(machine: str) -> None:
    head = f"file app.exe role entry; machine {machine}"
    assert judged(f"{head}\nentry app.exe looks-up nvcuda.dll!cuInit").verdict == "blocked"
    assert judged(f"{head}\nentry app.exe mentions nvcuda.dll!cuInit").verdict == "no-cuda"
