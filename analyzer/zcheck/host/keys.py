"""The closed list of what can be said of a PC: one key a kind of line, the same in checks, evidence and rules.

``cure`` of a check says what its severity is in a verdict (design section 3): *setup* when placing files or choosing a
variable or device cures it, *replace* (a blocker) when a driver, SDK, ZLUDA release or GPU must be replaced.
"""

from __future__ import annotations

KEYS: dict[str, str] = {
    # adapters
    "gpu": "gfx name of an AMD adapter; subject is the adapter",
    "gpu-none": "no AMD adapter; value names the vendors that are there",
    "gpu-unknown": "an AMD adapter whose gfx name cannot be told",
    "gpu-zluda": "what ZLUDA says of the adapter: supported, not supported, off the list (v3 and forks), unknown",
    "gpu-support": "what AMD says of adapter and HIP SDK: full, runtime only, not listed, none",
    "gpu-evidence": "step of the evidence ladder: verified, unverified candidate, experimental, unsupported, unknown",
    "igpu-first": "an integrated GPU is counted before a dedicated one; value is its index",
    "hipinfo": "hipInfo.exe listed the devices: ok",
    "hipinfo-failed": "hipInfo.exe found no device, failed or hung; value says which",
    # HIP SDK and driver
    "hip-sdk": "version of the HIP SDK in use, or therock",
    "hip-sdk-missing": "no HIP SDK folder on this PC",
    "hip-sdk-several": "more than one HIP SDK; value lists them",
    "hip-sdk-off-path": "this ZLUDA finds its HIP DLLs by PATH and the SDK's bin is not on it",
    "hip-path-unset": "an SDK is there and HIP_PATH is not set",
    "hip-path-nowhere": "HIP_PATH leads to no folder",
    "hip-path-no-bin": "HIP_PATH leads to a folder without bin",
    "hip-runtime": "HIP runtime DLL that the driver put into System32",
    "hip-runtime-missing": "no HIP runtime where this ZLUDA looks; value is the name it asks for",
    "wrong-amdhip-wins": "the search order gives a HIP runtime of another generation than the SDK; value is its name",
    "hip-generation-mixed": "ZLUDA's DLLs ask for HIP runtimes of several generations, or SDK and driver differ",
    "component-missing": "a component that this SDK version has and this folder lacks; value is the component",
    "component-absent": "a component that this SDK does not come with; value is the component",
    "tensile-missing": "no rocBLAS kernel files for an adapter, and placing some cures it; value is the gfx",
    "tensile-sdk": "no rocBLAS kernel files for an adapter in this SDK, another has them; value is the gfx",
    "hipblaslt-kernels-missing": "no hipBLASLt kernel files for an adapter; value is the gfx",
    # ZLUDA
    "zluda-missing": "no ZLUDA folder given or found",
    "zluda-release": "release of a ZLUDA folder",
    "zluda-unknown": "a ZLUDA folder whose release cannot be told",
    "zluda-file-missing": "a file of the release is not in its folder; value is the file",
    "zluda-file-foreign": "NVIDIA's own DLL under a name that ZLUDA has; value is the file",
    "zluda-file-machine": "a 32-bit or ARM64 DLL among ZLUDA's 64-bit ones; value is the file",
    "hip-dll-missing": "a ZLUDA DLL imports a HIP DLL that this PC does not have; value is the HIP DLL",
    "hip-dll-elsewhere": "a ZLUDA DLL imports a HIP DLL that is on this PC but not where it looks; value is the DLL",
    "hip-library-missing": "a ZLUDA library does not find its HIP DLL at its first use; value is the library",
    "hip-import-unresolved": "a HIP DLL lacks functions that a ZLUDA DLL imports; value is dll!function",
    "hip-delay-unresolved": "the same by the delay-import table, so that only the call fails; value is dll!function",
    "hip-lookup-unresolved": "the same by name at the first use of a ZLUDA library; value is the library",
    "vc-runtime-missing": "a Visual C++ runtime DLL that ZLUDA imports is not there; value is the DLL",
    # conflicts
    "zluda-on-path": "a ZLUDA folder on the search path of every program; value is the folder",
    "cuda-on-path": "an NVIDIA CUDA folder on the search path; value is the folder",
    "nvidia-leftover": "a DLL of an NVIDIA driver in System32 and no NVIDIA adapter; value is the DLL",
    "zluda-in-system32": "a CUDA DLL in System32 that NVIDIA did not make; value is the DLL",
    "zluda-in-cuda-toolkit": "ZLUDA's DLLs in the CUDA toolkit folder, where no program looks; value is the folder",
    "known-bad-os": "a Windows build that people report as broken; value is the build",
    "known-bad-driver": "a driver that people report as broken; value is its version or edition",
    "known-bad-sdk": "a HIP SDK that people report as broken with this GPU; value is its version",
    "path-non-ascii": "a folder of the stack has letters outside ASCII; value is the folder",
    "path-long": "a folder of the stack is too long; value is the folder",
    "path-read-only": "a staged folder cannot be written to; value is the folder",
}


def known(name: str) -> str:
    """The key itself; raises KeyError for one that is not in the list, which is a bug here."""
    if name not in KEYS:
        raise KeyError(name)
    return name
