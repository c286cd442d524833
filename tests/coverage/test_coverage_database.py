"""Answers of the database on rows that anybody can check by hand; needs nothing beside the checkout."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from zcheck.coverage.database import Database
from zcheck.errors import UsageError

# release, library, function, state, limit: by the source of each tag
SPOT = [
    ("v6", "cublas", "cublasGemmEx", "partial", "compute type 16F 32F 64F only"),
    ("v6", "cublas", "cublasDgemm_v2", "returns-error", None),
    ("v6", "cublas", "cublasXerbla", "ends-process", None),
    ("v6", "cufft", "cufftExecC2C", "returns-error", None),
    ("v6", "nvcuda", "cuInit", "implemented", None),
    ("v6", "nvcuda", "cuGraphicsD3D11RegisterResource", "not-exported", None),
    ("v6", "cudnn9", "cudnnGetLastErrorString", "ends-process", None),
    ("v6", "cusolver", "cusolverDnCreate", "library-missing", None),
    ("v4", "nvcuda", "cuGetProcAddress", "returns-error", None),
    ("v4", "cublas", "cublasGemmEx", "library-missing", None),
    ("v5-preview.101", "cublas", "cublasGemmEx", "returns-error", None),
    ("v5-preview.102", "cublas", "cublasGemmEx", "partial", "compute type 16F 32F 64F only"),
    ("v6-preview.3", "cudnn8", "cudnnCreate", "library-missing", None),
    ("v7-preview.1", "nvcuda32", "cuInit", "library-missing", None),
    ("v7-preview.2", "nvcuda32", "cuInit", "implemented", None),
    ("lshqqytiger-3.9.5", "cufftw", "fftw_execute", "ends-process", None),
    ("lshqqytiger-3.9.5-nightly", "cudnn8", "cudnnCreate", "implemented", None),
    ("v5-preview.50", "nvcuda", "cuInit", "unknown", None),
    ("v6", "a library that nobody knows", "f", "unknown", None),
]


@pytest.mark.parametrize(("tag", "library", "name", "state", "limit"), SPOT)
def test_spot_rows(database: Database, tag: str, library: str, name: str, state: str, limit: str | None) -> None:
    (answer,) = database.functions(database.resolve_release(tag), [(library, name)])
    assert (answer.library, answer.name, answer.state, answer.limit) == (library, name, state, limit)


def test_aliases_point_to_read_releases(database: Database) -> None:
    for alias, tag in database.release_aliases().items():
        release = database.resolve_release(alias)
        assert (release.tag, release.asked) == (tag, alias)
        assert release.read
    assert database.resolve_release("latest").tag == "v6"
    assert database.resolve_release("v7-preview").tag == "v7-preview.9"


@pytest.mark.parametrize("name", ["v6.0", "V6", "", "v5-preview.122", "v6-preview", "latest "])
def test_unknown_releases_are_told_with_near_names(database: Database, name: str) -> None:
    if name in database.release_aliases():
        assert database.resolve_release(name).asked == name
        return
    with pytest.raises(UsageError) as caught:
        database.resolve_release(name)
    assert repr(name) in caught.value.message
    if name == "V6":
        assert "v6" in caught.value.message


@pytest.mark.parametrize("number", range(43, 66))
def test_releases_that_were_not_read_have_no_answers(database: Database, number: int) -> None:
    release = database.resolve_release(f"v5-preview.{number}")
    assert not release.read
    assert database.nearest_main(release) is None
    assert database.layout(release) is None
    assert (database.libraries(release), database.capabilities(release)) == ((), {})
    assert (database.ptx_forms(release), database.aliases("cuInit", release)) == ((), ())
    answers = database.functions(release, [("nvcuda", "cuInit"), ("cusolver", "cusolverDnCreate")])
    assert {answer.state for answer in answers} == {"unknown"}


def test_names_are_exact_in_both_directions(database: Database) -> None:
    """No name is answered by one that merely begins with it, or that it begins with, or of another case."""
    v6 = database.resolve_release("v6")
    for library in sorted(database.libraries_with_functions(v6)):
        known = set(database.exported(v6, library))
        asked = {name[:-1] for name in known} | {name + "_" for name in known} | {name.upper() for name in known}
        asked |= {name.removesuffix("_v2") for name in known}
        asked -= known
        answers = database.functions(v6, [(library, name) for name in sorted(asked)])
        assert {answer.state for answer in answers} == {"not-exported"}


def test_answers_keep_the_order_and_doubles_of_the_question(database: Database) -> None:
    v6 = database.resolve_release("v6")
    asked = [("nvcuda", "cuInit"), ("cublas", "cublasGemmEx"), ("nvcuda", "cuInit"), ("cublas", "cuInit")]
    answers = database.functions(v6, asked)
    assert [(answer.library, answer.name) for answer in answers] == asked
    assert [answer.state for answer in answers] == ["implemented", "partial", "implemented", "not-exported"]
    assert database.functions(v6, []) == []


def test_cudnn_means_both(database: Database) -> None:
    v6, v6_preview_2 = database.resolve_release("v6"), database.resolve_release("v6-preview.2")
    fork = database.resolve_release("lshqqytiger-3.9.5-nightly")
    assert database.table_library(v6, "cudnn") == "cudnn9"
    assert database.table_library(v6_preview_2, "cudnn8") == "cudnn8"  # it has no cuDNN 8: none is made up
    assert database.table_library(fork, "cudnn8") == database.table_library(fork, "cudnn9") == "cudnn"


def test_confidence_is_lower_where_a_preview_inherits(database: Database) -> None:
    asked = [("cublas", "cublasGemmEx"), ("cublas", "cublasDgemm_v2")]
    main = database.functions(database.resolve_release("v6"), asked)
    preview = database.functions(database.resolve_release("v6-preview.75"), asked)
    assert [answer.confidence for answer in main] == ["high", "high"]
    assert [answer.confidence for answer in preview] == ["medium", "high"]


# capability, release, value: the known turns of design section 3
TURNS = [
    ("ptx_without_address_size", "v6-preview.70", "64"),
    ("ptx_without_address_size", "v6-preview.71", "32"),
    ("ptx_without_address_size", "v6", "32"),
    ("zluda_cc", "v6-preview.62", "no"),
    ("zluda_cc", "v6-preview.63", "yes"),
    ("compute_capability", "v7-preview.7", "8.8"),
    ("compute_capability", "v7-preview.8", "8.5"),
    ("launcher_redirects_blas", "v6-preview.27", "no"),
    ("launcher_redirects_blas", "v6-preview.28", "yes"),
    ("cublas_create_needs_hipblaslt", "v6-preview.57", "no"),
    ("cublas_create_needs_hipblaslt", "v6-preview.58", "yes"),
    ("processes_32bit", "v7-preview.1", "no"),
    ("processes_32bit", "v7-preview.2", "yes"),
    ("processes_arm64", "v7-preview.9", "no"),
    ("runtime_start_possible", "v3", "yes"),
    ("runtime_start_possible", "v4", "no"),
    ("runtime_start_possible", "v5-preview.66", "yes"),
    ("zstd", "v3", "no"),
    ("zstd", "v6", "yes"),
    ("fork", "lshqqytiger-3.9.5", "yes"),
    ("launcher", "v5", "zluda_with.exe"),
]


@pytest.mark.parametrize(("name", "tag", "value"), TURNS)
def test_known_turns(database: Database, name: str, tag: str, value: str) -> None:
    assert database.capabilities(database.resolve_release(tag))[name].value == value


def test_every_read_release_has_every_capability(database: Database) -> None:
    """A column that is missing for one release would make rules silently not match there."""
    columns = set(database.capabilities(database.resolve_release("v6")))
    late = {"ptx_without_address_size"}  # read from v6-preview.69 on only
    for release in database.releases():
        if release.read:
            assert set(database.capabilities(release)) | late == columns | late, release.tag


def test_libraries_of_previews_follow_their_layout(database: Database) -> None:
    def library(tag: str, name: str):  # type: ignore[no-untyped-def]
        return {item.library: item for item in database.libraries(database.resolve_release(tag))}.get(name)

    old, middle, late = (
        library("v6-preview.27", "cublas"),
        library("v6-preview.55", "cublas"),
        library("v6-preview.60", "cublas"),
    )
    assert (old.dll_names, old.injected) == (("cublas.dll",), ())
    assert middle.dll_names == middle.injected == ("cublas64_12.dll", "cublas64_13.dll")
    assert "cublas64_11.dll" in late.injected
    assert middle.hip_dlls == (("rocblas.dll",),)
    assert late.hip_dlls == (("rocblas.dll",), ("hipblaslt.dll", "libhipblaslt.dll"))
    assert library("v6-preview.33", "nvcuda").hip_dlls == (("amdhip64_6.dll",),)
    assert library("v6-preview.34", "nvcuda").hip_dlls == (("amdhip64_7.dll", "amdhip64_6.dll"),)
    assert library("v6", "cufft").stub and not library("v6", "cublas").stub
    assert library("v6-preview.3", "cudnn8") is None and library("v6-preview.4", "cudnn8") is not None
    assert library("v7-preview.2", "nvapi").injected == ("nvapi64.dll",)
    assert library("v7-preview.1", "nvcuda32") is None and library("v7-preview.2", "nvcuda32") is not None


DLLS = [
    ("nvcuda.dll", "nvcuda"),
    ("NVCUDA.DLL", "nvcuda"),
    ("C:\\Windows\\System32\\nvcuda.dll", "nvcuda"),
    ("lib/cublas64_12.dll", "cublas"),
    ("cublasLt64_12.dll", "cublasLt"),
    ("cudnn64_8.dll", "cudnn8"),
    ("cudnn_ops_infer64_8.dll", "cudnn8"),
    ("cudnn_ops64_9.dll", "cudnn9"),
    ("cudnn_engines_precompiled64_9.dll", "cudnn9"),
    ("cudart32_110.dll", "cudart"),
    ("nvcudart_hybrid64.dll", "cudart_hybrid"),
    ("nvrtc64_112_0.dll", "nvrtc"),
    ("nvrtc64_120_0.alt.dll", "nvrtc"),
    ("nvrtc-builtins64_124.dll", "nvrtc-builtins"),
    ("nppig64_12.dll", "npp"),
    ("nvinfer_10.dll", "tensorrt"),
    ("nvinfer_plugin.dll", "tensorrt"),
    ("nvngx_dlss.dll", "ngx"),
    ("nvEncodeAPI64.dll", "nvencode"),
    ("nvoptix.dll", "optix"),
    ("optix.6.6.0.dll", "optix"),
    ("cupti64_2024.1.1.dll", "cupti"),
    ("nccl.dll", "nccl"),
    ("xcublas64_12.dll", None),
    ("cublas64_12.dll.bak", None),
    ("cublas64_12", None),
    ("cudnn_ops64_8.dll", None),
    ("cublas64_.dll", None),
    ("checkpoint.dll", None),  # CUPTI has one, but so may anybody
    ("kernel32.dll", None),
    ("torch_cuda.dll", None),
    ("", None),
]


@pytest.mark.parametrize(("dll", "library"), DLLS)
def test_dll_names(database: Database, dll: str, library: str | None) -> None:
    assert database.library_of(dll) == library


@settings(max_examples=200, deadline=None)
@given(st.text(max_size=60))
def test_dll_names_take_anything(database: Database, name: str) -> None:
    database.library_of(name)


def test_families(database: Database) -> None:
    expected = {
        "cudnnConvolutionForward": "convolution",
        "cudnnRNNForward": "rnn",
        "cudnnMultiHeadAttnForward": "attention",
        "cudnnPoolingForward": "pooling",
        "cudnnBackendExecute": "graph",
        "cublasGemmEx": "gemm",
        "cublasLtMatmul": "gemm",
        "cublasStrsm_v2": "solver",
        "cufftExecC2C": "fft",
        "curandGenerateUniform": "random",
        "cusparseSpMM": "sparse",
        "cusolverDnSgetrf": "solver",
        "optixQueryFunctionTable": "ray tracing",
        "cuvidCreateDecoder": "video",
        "at::_ops::conv2d": "convolution",
        "at::_ops::addmm": "gemm",
        "torch::nn::LSTMImpl": "rnn",
    }
    found = database.families(expected)
    assert {name: {item.family for item in items} for name, items in found.items()} == {
        name: {family} for name, family in expected.items()
    }
    assert (
        database.families(["cublasCreate_v2", "cudnnCreate", "cublasGemm", "conv2d", "cudnnSetTensor4dDescriptor"])
        == {}
    )


def test_family_table_is_what_its_rules_give(database: Database) -> None:
    """A rule changed without the list, or the list by hand, shows here."""
    from pathlib import Path

    from zcheck.coverage.families import families

    tables = Path(__file__).resolve().parents[2] / "coverage_db"
    assert families(tables) == database.query("SELECT name, library, family, kind FROM family ORDER BY rowid")


def test_no_function_has_two_compute_families(database: Database) -> None:
    doubled = database.query("SELECT name, library FROM family GROUP BY name, library HAVING count(*) > 1")
    assert doubled == []


def test_hip_sdk_versions(database: Database) -> None:
    newest, first = database.hip_sdk("6.4"), database.hip_sdk("6.4.1")
    assert (newest.release, first.release) == ("6.4.2", "6.4.1")
    assert "MIOpen" in newest.with_state("no") and "hipBLASLt" in newest.with_state("yes")
    assert "hipBLASLt" in first.with_state("no")
    assert "hipBLASLt" in database.hip_sdk("6.2").with_state("no")
    therock = database.hip_sdk("therock")
    parts = {item.name: item.dlls for item in therock.components if item.included == "yes"}
    assert parts["MIOpen"] == ("MIOpen.dll",)
    assert parts["HIP runtime"] == ("amdhip64_7.dll",)
    assert parts["hipBLASLt"] == ("libhipblaslt.dll",)
    assert not database.hip_sdk("6.3").windows
    for unknown in ("6.9", "rocm", "6", "6.4.x", "7.2.0.1"):
        with pytest.raises(UsageError):
            database.hip_sdk(unknown)


def test_hip_look_ups(database: Database) -> None:
    assert "hipMalloc" in database.hip_exports("6.4")
    assert "hipEventRecordWithFlags" not in database.hip_exports("6.4.2")
    assert database.hip_exports("6.4") == database.hip_exports("6.4.1", "AMDHIP64_6.DLL")
    assert database.hip_exports("7.2", "amdhip64_7.dll") > {"hipMalloc"}
    assert database.hip_exports("5.5") == frozenset()
    dgemm = database.hipify("cublasDgemm_v2")
    assert dgemm is not None and (dgemm.hip_name, dgemm.hip_since) == ("hipblasDgemm", "1.8.2")
    old = database.hipify("cublasDgemm")
    assert old is not None and old.v2_signature_only
    assert database.hipify("cublasDgem") is None
    assert database.hip_export_gap("cudaEventRecordWithFlags") == "not in the Windows export list"
    gfx = database.gfx("gfx1200")
    assert gfx is not None and gfx.facts["generation"] == "RDNA4" and database.gfx("gfx12") is None
    assert [gpu.sdk_support for gpu in database.gpus(name="amd radeon rx 9060 xt", hip_sdk="6.4.2")] == ["full"]


def test_measured_calls(database: Database) -> None:
    calls = {call.driver_function for call in database.runtime_to_driver("cudaMalloc", "12.4") if call.phase == "call"}
    assert "cuMemAlloc_v2" in calls
    assert database.runtime_to_driver("cudaMalloc", "1") == ()  # 1 is no beginning of 12.4 or 11.8
    assert database.runtime_measured("cudaMalloc") and not database.runtime_measured("cudaD3D11GetDevice")
    assert ("cublasLt", "cublasLtCCCMatmul") in database.library_to_library("cublas", "cublasCgemm_v2")


def test_recorded_run_is_there(database: Database) -> None:
    (run,) = database.recorded_runs()
    assert (run.zluda, run.hip_sdk, run.gpu, run.workload, run.outcome) == (
        "v6-preview.69",
        "6.4",
        "gfx1200",
        "gemm",
        "passed",
    )
    assert [item.median for item in database.measurements()] == [13278.0, 12876.0]


def test_history_is_whole(database: Database) -> None:
    """The stretches of one function do not overlap and say when each state began."""
    stretches = [item for item in database.history("cublasGemmEx", "cublas") if "lshqqytiger" not in item.since]
    assert [(item.state, item.since, item.until) for item in stretches] == [
        ("returns-error", "v5-preview.66", "v5-preview.101"),
        ("partial", "v5-preview.102", "v5-preview.142"),
        ("partial", "v6-preview.1", None),
    ]
    (answer,) = database.functions(database.resolve_release("v6"), [("cublas", "cublasGemmEx")])
    assert (answer.since, answer.until) == ("v5-preview.102", None)
    assert database.history("cublasGemm") == []


def test_rows_of_any_table(database: Database) -> None:
    (row,) = database.rows("cuda_device_code", dll="nvjpeg64_12.dll")
    assert row["containers"] and row["version"] == "12.4.0.76"
    assert len(database.rows("library_map")) == 35
    for table, column in (("sqlite_master", "name"), ("library_map", "no such column")):
        with pytest.raises(KeyError):
            database.rows(table, **{column: "x"})
