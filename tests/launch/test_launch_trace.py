"""ZLUDA's trace logs: the example of its own handbook, failures, kernels, module logs, comparison with a prediction."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from zcheck.cli.trace import trace as verb
from zcheck.errors import InputError
from zcheck.launch.trace import _Reader, compare, read_trace, trace_logs
from zcheck.model.report import FunctionReport, Report

# Lines in the shape of vosen/ZLUDA's docs/src/troubleshooting.md, and of zluda_trace/src/log.rs for what it lacks
LOG = """\
cuInit(Flags: 0) -> CUDA_SUCCESS
    Created trace directory C:\\Users\\me\\AppData\\Local\\Temp\\zluda\\app.exe_1
cuModuleLoadData(module: 0x55ee93d63c40, image: 0x7ff6) -> CUDA_SUCCESS
    Saved module to module_0001_01.elf
    Saved module to module_0001_02.ptx
    Error parsing module, log has been written to module_0001_02.log
cuModuleGetFunction(hfunc: 0x55ee94d645d0, hmod: 0x55ee94d63c40, name: "_Z3addiiPi") -> CUDA_SUCCESS
cuStreamQuery(hStream: 0x0) -> CUDA_ERROR_NOT_READY
{CONTEXT_LOCAL_STORAGE_INTERFACE_V0301}::context_local_storage_get(value: 0x55ee93e083c0, cu_ctx: 0x0) -> CUDA_SUCCESS
    cuCtxGetCurrent(pctx: 0x1) -> CUDA_SUCCESS
cublasCreate_v2(handle: 0x1) -> CUBLAS_STATUS_SUCCESS
cuLaunchKernel(f: 0x55ee94d645d0, gridDimX: 1, gridDimY: 1, gridDimZ: 1, extra: NULL) -> CUDA_ERROR_INVALID_VALUE
cublasSgemm_v2(handle: 0x1, m: 2) -> CUBLAS_STATUS_NOT_SUPPORTED
cuMemFree_v2(...) -> UNKNOWN
cuDevicePrimaryCtxRelease(dev: 0) -> CUDA_ERROR_DEINITIALIZED
"""
MODULE_LOG = 'Unrecognized statement "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1}, %rd1, %rd2, p, 1, 1;"\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "app.exe_1"
    place.mkdir()
    (place / "log.txt").write_text(LOG)
    (place / "module_0001_02.log").write_text(MODULE_LOG)
    (place / "module_0001_02.ptx").write_text(".version 8.7")
    return place


def test_counts_statuses_and_the_first_error(folder: Path) -> None:
    found = read_trace(folder / "log.txt")
    by_name = {item.name: item for item in found.functions}
    assert found.calls == 11
    assert by_name["cuLaunchKernel"].statuses == {"CUDA_ERROR_INVALID_VALUE": 1}
    assert by_name["cuCtxGetCurrent"].nested == 1
    assert by_name["cuModuleLoadData"].errors == ("Error parsing module, log has been written to module_0001_02.log",)
    assert found.first_error is not None
    assert (found.first_error.name, found.first_error.line) == ("cuLaunchKernel", 12)
    assert [(call.kernel, call.status) for call in found.failed_launches] == [
        ("_Z3addiiPi", "CUDA_ERROR_INVALID_VALUE")
    ]
    assert [call.name for call in found.unknown_output] == ["cuMemFree_v2"]
    assert found.saved_modules == ("module_0001_01.elf", "module_0001_02.ptx")
    assert "wgmma.mma_async" in found.modules[0].problems[0]
    assert not found.problems


def test_the_same_lines_on_stderr_among_the_programs_own(tmp_path: Path, folder: Path) -> None:
    lines = [f"[ZLUDA_TRACE] {line}" for line in LOG.splitlines()]
    lines.insert(3, "result: 3")
    lines[5] = "progress 50%" + lines[5]
    (tmp_path / "stderr.txt").write_text("\n".join(lines))
    found = read_trace(tmp_path / "stderr.txt")
    assert found.functions == read_trace(folder / "log.txt").functions
    assert found.first_error is not None
    assert found.first_error.name == "cuLaunchKernel"


def test_a_log_that_breaks_off_says_so(folder: Path) -> None:
    (folder / "log.txt").write_text(LOG + "cuMemAlloc_v2(dptr: 0x1, bytes")
    assert [problem.partial for problem in read_trace(folder / "log.txt").problems] == [True]


def test_folders_of_several_processes(tmp_path: Path, folder: Path) -> None:
    assert trace_logs(tmp_path) == (folder / "log.txt",)
    assert trace_logs(folder) == (folder / "log.txt",)
    (tmp_path / "empty").mkdir()
    for bad in (tmp_path / "empty", tmp_path / "none"):
        with pytest.raises(InputError):
            trace_logs(bad)
    (tmp_path / "x.txt").write_text("nothing of the kind\n")
    with pytest.raises(InputError, match="no call"):
        read_trace(tmp_path / "x.txt")


def _report(*names: tuple[str, str]) -> Report:
    functions = tuple(FunctionReport("cuda", name, kind, ("app.exe",), {}) for name, kind in names)
    return Report(
        schema=1, zcheck="0", database="d", target="app.exe", entries=("app.exe",), stacks=(), modules=(), edges=(),
        functions=functions, device_code=(), host=None, skipped=(),
    )  # fmt: skip


def test_comparison_with_the_prediction_is_by_exact_name(folder: Path) -> None:
    report = _report(
        ("cuInit", "import"), ("cuLaunchKernel", "dynamic"), ("cuMemFree", "import"), ("cublasSgemm_v2", "mention")
    )
    found = compare(read_trace(folder / "log.txt"), report)
    assert found.predicted_and_called == ("cuInit", "cuLaunchKernel")
    assert found.predicted_only == ("cuMemFree",)
    assert "cuMemFree_v2" in found.unforeseen, "another name is another function"
    assert "cublasSgemm_v2" not in found.unforeseen, "a mention is no prediction, but no surprise either"
    assert not {"cuCtxGetCurrent"} & set(found.unforeseen), "called from inside only"


def test_verb_text_and_json(folder: Path, tmp_path: Path) -> None:
    import msgspec

    app = typer.Typer()
    app.command()(verb)
    saved = tmp_path / "report.json"
    saved.write_bytes(msgspec.json.encode(_report(("cuInit", "import"))))
    text = CliRunner().invoke(app, [str(folder), "--against", str(saved)])
    assert text.exit_code == 0, text.output
    assert "First error: cuLaunchKernel -> CUDA_ERROR_INVALID_VALUE (line 12, kernel _Z3addiiPi)" in text.output
    assert "called, not predicted" in text.output
    product = json.loads(CliRunner().invoke(app, [str(folder), "--format", "json"]).output)
    assert product["schema"] == 1
    assert product["comparison"] is None


@given(st.lists(st.text(max_size=120), max_size=40))
def test_any_text_is_taken(lines: list[str]) -> None:
    reader = _Reader()
    for number, line in enumerate(lines, 1):
        reader.line(number, line, "log.txt")
    assert reader.calls >= 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["cuInit", "cuMemAlloc_v2", "{X}::y"]), st.sampled_from(["CUDA_SUCCESS", "CUDA_ERROR_X"])
        ),
        max_size=50,
    )
)
def test_every_call_is_counted_once(calls: list[tuple[str, str]]) -> None:
    reader = _Reader()
    for number, (name, status) in enumerate(calls, 1):
        reader.line(number, f"{name}(a: 1) -> {status}", "log.txt")
    assert reader.calls == len(calls)
    assert sum(item.calls for item in reader.functions.values()) == len(calls)
