"""Measured workloads as evidence: every function that was called, as *called* evidence of one program."""

from __future__ import annotations

from zcheck.coverage import Database
from zcheck.model.evidence import Evidence, FileFact, Use

# Layer of a measured workload → the DLL under which a Windows program of CUDA 13 would reach those functions.
DLLS = {
    "runtime": "cudart64_13.dll",
    "driver_direct": "nvcuda.dll",
    "driver_from_code_with_static_cudart": "nvcuda.dll",
    "cublas": "cublas64_13.dll",
    "cublasLt": "cublasLt64_13.dll",
    "cudnn": "cudnn64_9.dll",
    "cufft": "cufft64_12.dll",
    "curand": "curand64_10.dll",
    "cusparse": "cusparse64_12.dll",
    "cusolver": "cusolver64_12.dll",
    "nvrtc": "nvrtc64_130_0.dll",
    "nvJitLink": "nvJitLink_130_0.dll",
    "nccl": "nccl64_2.dll",
    "cusparseLt": "cusparseLt.dll",
    "npp": "nppc64_13.dll",
    "nvjpeg": "nvjpeg64_13.dll",
    "nvml": "nvml.dll",
}
RUNTIME = "NVIDIA CUDA 13.0.96 Runtime"


def workloads(database: Database) -> dict[str, dict[str, tuple[str, ...]]]:
    """Workload → layer → functions, from the coverage database."""
    found: dict[str, dict[str, tuple[str, ...]]] = {}
    for name, layer, functions in database.query("SELECT workload, layer, functions FROM workload ORDER BY rowid"):
        found.setdefault(name, {})[layer] = tuple(functions.split())
    return found


def evidence(name: str, layers: dict[str, tuple[str, ...]]) -> Evidence:
    """One workload's calls; libraries that stay NVIDIA's own lie in the bundle."""
    items: list[FileFact | Use] = [
        FileFact(f"{name}.exe", role="entry"),
        FileFact("cudart64_13.dll", role="vendor", description=RUNTIME),
    ]
    for layer, functions in layers.items():
        if layer in DLLS:
            items += [
                Use("entry", f"{name}.exe", "call", DLLS[layer], function, found="bundle", because="measured")
                for function in functions
            ]
    return Evidence(f"{name}.exe", tuple(items))
