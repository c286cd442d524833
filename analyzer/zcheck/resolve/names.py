"""DLL names as the loader takes them, and names that tell what a DLL is about."""

from __future__ import annotations

import re

from zcheck.resolve.windows import API_SETS

HOST_PROGRAM = re.compile(r"(python3\d*t?(_d)?|node|electron|libnode|nw)\.(dll|exe)")
"""modules that a .pyd or .node finds in the process that loads it"""
PYTHON = re.compile(r"pythonw?(\d[\d.]*t?)?(_d)?\.exe", re.IGNORECASE)
"""names of the interpreter"""
CUDA_LIKE = re.compile(
    r"cuda|cublas|cudnn|cufft|curand|cusparse|cusolver|cupti|cutensor|nvrtc|nvjitlink|nvjpeg|nvml|nvapi|nvcuvid|nvenc"
    r"|nvinfer|nvonnx|nvtx|nvfatbin|nvptx|nvvm|nccl|optix|^npp[a-z]|[-_.]cu\d\d",
    re.IGNORECASE,
)
"""names by which an unreached file of the bundle is worth a mention; says nothing about what the file does"""
VC_ASSEMBLY = re.compile(r"Microsoft\.VC(\d+)\.(CRT|MFC|MFCLOC|ATL|OpenMP|DebugCRT)", re.IGNORECASE)
_VC_FILES = {
    "crt": ("msvcr", "msvcp", "msvcm"),
    "debugcrt": ("msvcr", "msvcp", "msvcm"),
    "mfc": ("mfc",),
    "mfcloc": ("mfc",),
    "atl": ("atl",),
    "openmp": ("vcomp",),
}


def module_name(dll: str) -> str:
    """The lower-case file name that the loader looks for: a name without a dot gets ``.dll``, a last dot is dropped."""
    name = dll.replace("/", "\\").rpartition("\\")[2].lower()
    if name.endswith("."):
        return name[:-1]
    return name if "." in name else f"{name}.dll"


def folder_part(dll: str) -> str:
    """The folder that a DLL name carries, with ``/``; empty for a bare name."""
    return dll.replace("\\", "/").rpartition("/")[0].lower()


def is_api_set(name: str) -> bool:
    """True for names of API sets."""
    return name.startswith(API_SETS)


def split_forwarder(forwarder: str) -> tuple[str, str]:
    """DLL and function of a forwarder string: ``NTDLL.RtlAllocateHeap``, ``mapi32.#4``; the last dot divides them."""
    dll, _, function = forwarder.rpartition(".")
    return dll, function


def in_assembly(assembly: str, name: str) -> bool:
    """True when a side-by-side assembly of Visual C++ 2005 or 2008 holds the DLL of that lower-case name."""
    match = VC_ASSEMBLY.fullmatch(assembly)
    if not match:
        return False
    version, part = match[1], match[2].lower()
    return name.startswith(tuple(prefix + version for prefix in _VC_FILES[part]))
