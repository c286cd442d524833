"""Real programs that hide their CUDA, read whole: what is found, and that nothing else is."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from name_tables import tables

import corpus
from zcheck.model.facts import PeFacts
from zcheck.model.hidden import HiddenFacts
from zcheck.parse.pe import read_pe
from zcheck.parse.strings import scan

pytestmark = pytest.mark.corpus


def read(path: Path) -> tuple[PeFacts, HiddenFacts]:
    facts = read_pe(path)
    return facts, scan(path, facts, tables())


def names(hidden: HiddenFacts, library: str) -> set[str]:
    return {f.symbol or f.name for f in hidden.functions if f.library == library}


def imported(facts: PeFacts, dll: str) -> set[str]:
    return {s.name for d in facts.imports if d.dll.lower() == dll for s in d.symbols if s.name}


def test_ctranslate2_keeps_nine_cublas_names_of_eleven_hundred() -> None:
    _, hidden = read(corpus.path("ctranslate2") / "ctranslate2" / "ctranslate2.dll")
    assert {f.name for f in hidden.functions} == {
        "cublasCreate_v2",
        "cublasDestroy_v2",
        "cublasGemmEx",
        "cublasGemmStridedBatchedEx",
        "cublasGetMathMode",
        "cublasGetProperty",
        "cublasSetStream_v2",
        "cublasSgemmStridedBatched",
        "cublasSgemm_v2",
    }
    assert {f.library for f in hidden.functions} == {"cublas"}
    assert [(d.dll, d.how, d.confidence) for d in hidden.dlls] == [
        ("cublas64_12.dll", "exact", "high"),
        ("nvcuda.dll", "runtime", "high"),
    ]
    assert hidden.subtracted == 1114
    (runtime,) = hidden.runtimes
    assert (runtime.kind, runtime.oldest, runtime.newest) == ("cudart", "12.8.90", "12.9.79")
    assert hidden.functions[0].place.section == ".rdata"


def test_the_driver_loader_tells_the_functions_that_the_import_table_of_the_older_build_lists() -> None:
    parts = ("OpenMM.libs", "lib", "plugins", "OpenMMCUDA.dll")
    old, _ = read(corpus.path("openmm-cuda-12").joinpath(*parts))
    new, hidden = read(corpus.path("openmm-cuda-13").joinpath(*parts))
    wanted = imported(old, "nvcuda.dll")
    assert len(wanted) == 41
    assert not imported(new, "nvcuda.dll")
    found = names(hidden, "nvcuda")
    # the CUDA 13 headers turn cuCtxCreate into its fourth form
    assert wanted - found == {"cuCtxCreate_v2"}
    assert found - wanted == {"cuCtxCreate_v4"}
    assert [(r.kind, r.oldest, r.newest, r.seen == r.known) for r in hidden.runtimes] == [
        ("cuda.lib", "13.0.96", "13.0.96", True)
    ]


def test_the_hybrid_loader_tells_the_runtime_functions_that_the_older_build_imports() -> None:
    folder = corpus.path("bitsandbytes") / "bitsandbytes"
    old, _ = read(folder / "libbitsandbytes_cuda128.dll")
    _, hidden = read(folder / "libbitsandbytes_cuda130.dll")
    wanted = imported(old, "cudart64_12.dll")
    # launching and registering kernels goes another way in the hybrid loader
    assert names(hidden, "cudart") == {n for n in wanted if not n.startswith("__") and n != "cudaLaunchKernel"}
    assert len(names(hidden, "cudart")) == 8
    assert [r.kind for r in hidden.runtimes] == ["cudart-hybrid"]
    assert {d.dll for d in hidden.dlls} == {"nvcuda.dll", "nvcudart_hybrid64.dll"}


def test_bitsandbytes_with_imports_only_hides_nothing() -> None:
    for name in ("libbitsandbytes_cuda118.dll", "libbitsandbytes_rocm72.dll"):
        _, hidden = read(corpus.path("bitsandbytes") / "bitsandbytes" / name)
        assert (hidden.dlls, hidden.functions, hidden.mentions, hidden.runtimes) == ((), (), (), ())


def test_drjit_loads_everything_by_name() -> None:
    path = corpus.path("drjit") / "drjit" / "drjit-core.dll"
    facts, hidden = read(path)
    assert {d.dll: d.library for d in hidden.dlls} == {"nvcuda.dll": "nvcuda", "nvoptix.dll": "optix"}
    assert not imported(facts, "nvcuda.dll")
    # another way to the same: every NUL-terminated word of the file that is a driver function
    words = {m.decode() for m in re.findall(rb"(?<![A-Za-z0-9_])cu[A-Z][A-Za-z0-9_]+(?=\0)", path.read_bytes())}
    assert names(hidden, "nvcuda") == {w for w in words if tables().functions.get(w) == "nvcuda"}
    assert {"cuInit", "cuLaunchKernel", "cuMemAllocAsync"} <= names(hidden, "nvcuda")
    assert "optixQueryFunctionTable" in names(hidden, "optix")
    assert hidden.loader.by_name and not hidden.runtimes


def test_vszipcu_names_two_nvrtc_and_uses_the_driver_through_its_loader() -> None:
    _, hidden = read(corpus.path("vapoursynth-vszipcu") / "vapoursynth" / "plugins" / "vszipcu" / "vszipcu.dll")
    assert {d.dll: d.how for d in hidden.dlls} == {
        "nvcuda.dll": "runtime",
        "nvrtc64_120_0.dll": "exact",
        "nvrtc64_130_0.dll": "exact",
    }
    assert "nvrtcCompileProgram" in names(hidden, "nvrtc")
    assert {"cuInit", "cuLaunchKernel", "cuModuleLoadData"} & names(hidden, "nvcuda")
    assert all(f.how == "loader" for f in hidden.functions if f.library == "nvcuda")


def test_a_delay_loaded_library_is_no_dynamic_one() -> None:
    folder = corpus.path("vapoursynth-dfttest2-cuda") / "vapoursynth" / "plugins" / "dfttest2_cuda"
    facts, hidden = read(folder / "dfttest2_cuda.dll")
    assert any(d.delay and d.dll.lower() == "cufft64_12.dll" for d in facts.imports)
    assert {d.dll for d in hidden.dlls} == {"nvcuda.dll"}
    assert not names(hidden, "cufft")
    # it hooks the helper to load cuFFT out of a folder of its own choice
    assert set(hidden.loader.delay_hooks) == {"__delayLoadHelper2", "__pfnDliFailureHook2", "__pfnDliNotifyHook2"}


def test_ffmpeg_of_32_bits_loads_the_driver_by_name() -> None:
    facts, hidden = read(corpus.path("@ffmpeg-installer/win32-ia32") / "package" / "ffmpeg.exe")
    assert facts.machine == "x86"
    assert {d.dll: d.library for d in hidden.dlls} == {
        "nvcuda.dll": "nvcuda",
        "nvcuvid.dll": "nvcuvid",
        "nvEncodeAPI.dll": "nvencode",
    }
    assert {"cuInit", "cuCtxCreate_v2", "cuMemAlloc_v2"} <= names(hidden, "nvcuda")
    assert "cuvidCreateDecoder" in names(hidden, "nvcuvid")
    assert "NvEncodeAPICreateInstance" in names(hidden, "nvencode")


def test_libre_hardware_monitor_by_metadata_and_literals() -> None:
    path = corpus.path("hardwaremonitor") / "HardwareMonitor" / "lib" / "LibreHardwareMonitorLib.dll"
    facts, hidden = read(path)
    assert facts.is_dotnet
    assert {(d.dll, d.how, d.place.encoding) for d in hidden.dlls} == {
        ("nvapi.dll", "p-invoke", "metadata"),
        ("nvapi64.dll", "p-invoke", "metadata"),
        ("nvml.dll", "exact", "utf-16"),
    }
    assert names(hidden, "nvapi") == {"nvapi_QueryInterface"}
    assert {"nvmlInit_v2", "nvmlShutdown", "nvmlDeviceGetPowerUsage"} <= names(hidden, "nvml")
    rows = {(p.dll, p.function, p.method) for p in hidden.p_invokes}
    assert ("nvapi64.dll", "nvapi_QueryInterface", "NvApi.NvAPI64_QueryInterface") in rows
    assert "LoadLibraryW" in hidden.loader.load_library
    assert not hidden.problems
    # the literals stand at the offset that is named
    (nvml,) = [d for d in hidden.dlls if d.dll == "nvml.dll"]
    assert path.read_bytes()[nvml.place.file_offset :].startswith("nvml.dll".encode("utf-16-le"))


@pytest.mark.slow
def test_xgboost_has_a_static_runtime_and_asks_for_virtual_memory() -> None:
    _, hidden = read(corpus.path("xgboost") / "xgboost" / "lib" / "xgboost.dll")
    assert [(r.kind, r.newest) for r in hidden.runtimes] == [("cudart", "12.9.79")]
    assert "cuMemAddressReserve" in names(hidden, "nvcuda")


@pytest.mark.parametrize("package", ["numpy", "llvmlite", "openmm", "@node-llama-cpp/win-arm64"])
def test_programs_without_cuda_hide_none(package: str) -> None:
    files = [
        p for p in corpus.path(package).rglob("*") if p.suffix in (".dll", ".pyd", ".node", ".exe") and p.is_file()
    ]
    assert files
    for path in files:
        _, hidden = read(path)
        assert (path.name, hidden.dlls, hidden.functions, hidden.runtimes) == (path.name, (), (), ())


@pytest.mark.parametrize(
    ("package", "version"),
    [
        ("nvidia-cuda-runtime-cu11", "11.8.89"),
        ("nvidia-cuda-runtime-cu12", "12.4.127"),
        ("nvidia-cuda-runtime", "13.5.37"),
    ],
)
def test_the_runtime_dll_knows_its_own_version(package: str, version: str) -> None:
    for path in corpus.path(package).rglob("cudart*.dll"):
        _, hidden = read(path)
        (runtime,) = hidden.runtimes
        assert (runtime.kind, runtime.oldest, runtime.newest, runtime.whole_file) == ("cudart", version, version, True)
        assert not hidden.functions
        assert {d.dll for d in hidden.dlls} <= {"nvcuda.dll", "nvcudart_hybrid64.dll"}
