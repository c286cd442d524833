"""Builds a faked PC from a few words of matrix.yaml: System32, HIP SDK folders, ZLUDA folders, host.yaml.

The DLLs are real PE files: HIP's export what AMD's lists for that version say, ZLUDA's what the coverage database
says of that release and ask HIP for what their kind asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml
from pe_writer import write_pe

from zcheck.cli.host_tables import host_tables, zluda_exports
from zcheck.coverage.database import Database
from zcheck.host.release import library_of
from zcheck.host.zluda import layout_for
from zcheck.model.host import HostTables, ZludaExports

HERE = Path(__file__).parent
AMD = "Advanced Micro Devices, Inc."
# What a ZLUDA nvcuda.dll asks of the HIP runtime; all of HIP 5.7 to 7 export these.
HIP_FUNCTIONS = ("hipInit", "hipMalloc", "hipModuleLaunchKernel", "hipStreamCreate", "hipGraphCreate")
RUNTIME_VERSIONS = {"5.7": "5.7.1", "6.1": "6.1.2", "6.2": "6.2.4", "6.4": "6.4.1", "7.1": "7.x-develop"}
ADAPTERS: dict[str, dict[str, Any]] = {
    "rx9060xt": {"name": "AMD Radeon RX 9060 XT", "pnp_id": r"PCI\VEN_1002&DEV_7590&REV_C0", "memory_mib": 16304},
    "rx9070": {"name": "AMD Radeon RX 9070", "pnp_id": r"PCI\VEN_1002&DEV_7550&REV_C3", "memory_mib": 16304},
    "rx9070xt": {"name": "AMD Radeon RX 9070 XT", "pnp_id": r"PCI\VEN_1002&DEV_7550&REV_C0", "memory_mib": 16304},
    "rx7900xtx": {"name": "AMD Radeon RX 7900 XTX", "pnp_id": r"PCI\VEN_1002&DEV_744C&REV_C8", "memory_mib": 24560},
    "rx7900xt": {"name": "AMD Radeon RX 7900 XT", "pnp_id": r"PCI\VEN_1002&DEV_744C&REV_CC", "memory_mib": 20464},
    "rx7800xt": {"name": "AMD Radeon RX 7800 XT", "pnp_id": r"PCI\VEN_1002&DEV_747E&REV_C8", "memory_mib": 16368},
    "rx7600": {"name": "AMD Radeon RX 7600", "pnp_id": r"PCI\VEN_1002&DEV_7480&REV_CF", "memory_mib": 8176},
    "rx6950xt": {"name": "AMD Radeon RX 6950 XT", "pnp_id": r"PCI\VEN_1002&DEV_73A5&REV_C0", "memory_mib": 16368},
    "rx6800xt": {"name": "AMD Radeon RX 6800 XT", "pnp_id": r"PCI\VEN_1002&DEV_73BF&REV_C1", "memory_mib": 16368},
    "rx6700xt": {"name": "AMD Radeon RX 6700 XT", "pnp_id": r"PCI\VEN_1002&DEV_73DF&REV_C1", "memory_mib": 12272},
    "rx5700xt": {"name": "AMD Radeon RX 5700 XT", "pnp_id": r"PCI\VEN_1002&DEV_731F&REV_C1", "memory_mib": 8176},
    "rx5700": {"name": "AMD Radeon RX 5700", "pnp_id": r"PCI\VEN_1002&DEV_731F&REV_C4", "memory_mib": 8176},
    "rx580": {"name": "Radeon RX 580 Series", "pnp_id": r"PCI\VEN_1002&DEV_67DF&REV_E7", "memory_mib": 8192},
    "rx570": {"name": "Radeon RX 570 Series", "pnp_id": r"PCI\VEN_1002&DEV_67DF&REV_EF", "memory_mib": 4096},
    "rx590": {"name": "Radeon RX 590 Series", "pnp_id": r"PCI\VEN_1002&DEV_67DF&REV_E1", "memory_mib": 8192},
    "rx560": {"name": "Radeon RX 560 Series", "pnp_id": r"PCI\VEN_1002&DEV_67FF&REV_CF", "memory_mib": 4096},
    "vega56": {"name": "Radeon RX Vega", "pnp_id": r"PCI\VEN_1002&DEV_687F&REV_C3", "memory_mib": 8176},
    "vega64": {"name": "Radeon RX Vega", "pnp_id": r"PCI\VEN_1002&DEV_687F&REV_C1", "memory_mib": 8176},
    "780m": {"name": "AMD Radeon 780M Graphics", "pnp_id": r"PCI\VEN_1002&DEV_15BF&REV_C4", "memory_mib": 4096},
    "890m": {"name": "AMD Radeon(TM) 890M Graphics", "pnp_id": r"PCI\VEN_1002&DEV_150E&REV_C1", "memory_mib": 4096},
    "raphael": {"name": "AMD Radeon(TM) Graphics", "pnp_id": r"PCI\VEN_1002&DEV_164E&REV_C1", "memory_mib": 512},
    "granite": {"name": "AMD Radeon(TM) Graphics", "pnp_id": r"PCI\VEN_1002&DEV_13C0&REV_C9", "memory_mib": 512},
    "uhd770": {"name": "Intel(R) UHD Graphics 770", "pnp_id": r"PCI\VEN_8086&DEV_4680", "memory_mib": 128},
    "rtx4070": {"name": "NVIDIA GeForce RTX 4070", "pnp_id": r"PCI\VEN_10DE&DEV_2786", "memory_mib": 12282},
}
# gfx names that AMD's SDKs ship rocBLAS kernels for: gfx_capabilities (6.4) and the full-support rows of gpus.csv.
ROCBLAS = {
    "5.7": ("gfx1030", "gfx1100", "gfx1102"),
    "6.1": ("gfx1030", "gfx1100", "gfx1101", "gfx1102"),
    "6.2": ("gfx1030", "gfx1100", "gfx1101", "gfx1102"),
    "6.4": ("gfx1030", "gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"),
    "7.1": ("gfx1100", "gfx1101", "gfx1102", "gfx1151", "gfx1200", "gfx1201"),
}
HIPBLASLT = {"6.4": "hipblaslt.dll", "7.1": "libhipblaslt.dll"}


@lru_cache(maxsize=1)
def database() -> Database:
    return Database.open()


@lru_cache(maxsize=1)
def tables() -> HostTables:
    return host_tables(database())


@lru_cache(maxsize=1)
def exports() -> ZludaExports:
    return zluda_exports(database())


@lru_cache(maxsize=256)
def _pe(
    name: str,
    imports: tuple[tuple[str, tuple[str, ...]], ...] = (),
    delayed: tuple[tuple[str, tuple[str, ...]], ...] = (),
    exported: tuple[str, ...] = (),
    version: tuple[str, str] = ("", ""),
    machine: str = "x64",
    data: bytes = b"",
) -> bytes:
    strings = {"CompanyName": version[0], "FileVersion": version[1]} if version[0] else None
    return write_pe(
        name,
        imports=dict(imports),
        delay_imports=dict(delayed),
        exports=exported,
        version=strings,
        machine=machine,
        data=data,
    )


def place(root: Path, path: str, data: bytes = b"") -> Path:
    """Write a file at a Windows path of the PC."""
    drive, _, rest = path.partition(":\\")
    folder = root if drive.upper() == "C" else root / f"drive_{drive.lower()}"
    target = folder.joinpath(*rest.split("\\"))
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(data)
    return target


def runtime(name: str, version: str, without: Sequence[str] = ()) -> bytes:
    """A HIP runtime DLL with the exports of that version less some."""
    names = database().hip_exports(RUNTIME_VERSIONS[version], name)
    assert names, (name, version)
    exported = tuple(sorted(names - set(without)))
    return _pe(name, exported=exported, version=(AMD, f"{version}.0.0"))


def library(name: str, runtime_name: str, without: Sequence[str] = ()) -> bytes:
    """A HIP library DLL: it imports its runtime and exports what any ZLUDA release looks up in it."""
    folded = name.lower()
    wanted = {row.symbol for row in tables().hip_symbols if folded in [dll.lower() for dll in row.dlls]}
    exported = tuple(sorted(wanted - set(without))) or (f"{folded.partition('.')[0]}_version",)
    return _pe(name, imports=((runtime_name, ("hipInit",)),), exported=exported, version=(AMD, "4.0.0.0"))


def write_sdk(root: Path, spec: Mapping[str, Any]) -> None:
    """A HIP SDK folder. Keys: version, path, therock, runtime, own_runtime, rocblas, hipblaslt, miopen, without."""
    version = str(spec["version"])
    path = spec.get("path", rf"C:\Program Files\AMD\ROCm\{version}")
    bin_folder = rf"{path}\bin"
    name = spec.get("runtime") or {"5": "amdhip64.dll", "6": "amdhip64_6.dll"}.get(version[0], "amdhip64_7.dll")
    without = spec.get("without", [])
    short = version if version in RUNTIME_VERSIONS else "7.1"
    if spec.get("own_runtime", True):
        place(root, rf"{bin_folder}\{name}", runtime(name, short))
    major, minor = version.split(".")[:2]
    if not spec.get("therock"):
        place(
            root,
            rf"{bin_folder}\hiprtc{int(major):02}{int(minor):02}.dll",
            _pe("hiprtc.dll", exported=("hiprtcVersion",)),
        )
    rows = {row.name: row.dlls for row in tables().components if row.version == version and row.included == "yes"}
    heavy = {"rocBLAS": "rocblas.dll", "rocSPARSE": "rocsparse.dll"}
    for component, dlls in rows.items():
        for dll in dlls:
            if component not in ("HIP runtime", "hipRTC", "hipBLASLt", *heavy) and dll not in without:
                place(root, rf"{bin_folder}\{dll}", b"MZ")
    for dll in heavy.values():
        if dll not in without:
            place(root, rf"{bin_folder}\{dll}", library(dll, name, spec.get("lacks", ())))
    lt = spec.get("hipblaslt", "libhipblaslt.dll" if spec.get("therock") else HIPBLASLT.get(version, ""))
    gfx = spec.get("rocblas", ROCBLAS.get(version, ()))
    if lt and lt not in without:
        place(root, rf"{bin_folder}\{lt}", library(lt, name, spec.get("lacks", ())))
        for one in spec.get("hipblaslt_gfx", gfx):
            place(root, rf"{bin_folder}\hipblaslt\library\TensileLibrary_HH_{one}.dat")
    if spec.get("miopen") or spec.get("therock"):
        place(root, rf"{bin_folder}\MIOpen.dll", library("MIOpen.dll", name, spec.get("lacks", ())))
    for one in gfx:
        place(root, rf"{bin_folder}\rocblas\library\TensileLibrary_lazy_{one}.dat")
        place(root, rf"{bin_folder}\rocblas\library\Kernels.so-000-{one}.hsaco")
    place(root, rf"{bin_folder}\hipInfo.exe", b"MZ")


def _asks(release: str, file: str) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Imports and delay imports of a ZLUDA file, by its release's layout."""
    layout = layout_for(release, tables())
    assert layout is not None, release
    library_name = library_of(file)
    imports: dict[str, tuple[str, ...]] = {"VCRUNTIME140.dll": ("memcpy",)}
    delayed: dict[str, tuple[str, ...]] = {}
    if library_name == "nvcuda" or library_name.startswith("cudnn"):
        if "delay-loads" in layout.hip_runtime:
            delayed["amdhip64_7.dll"] = HIP_FUNCTIONS
        elif library_name == "nvcuda":
            imports[layout.hip_runtime.split()[1]] = HIP_FUNCTIONS
    if "delay-loads" not in layout.hip_runtime:
        rows = [row for row in tables().libraries if row.library == library_name]
        own = next((row for row in rows if row.release == release), rows[0] if rows else None)
        for group in own.hip_dlls if own else ():
            if group[0].startswith(("rocblas", "hipblaslt", "rocsparse")):
                imports[group[0]] = (f"{group[0].partition('.')[0]}_create_handle",)
    return imports, delayed


def write_zluda(root: Path, spec: Mapping[str, Any]) -> None:
    """A ZLUDA folder. Keys: release, path, only, remove, nvidia, x86, asks (file: {dll: [functions]}), delay_asks."""
    release = spec.get("release", "v6")
    path = spec.get("path", r"C:\zluda")
    layout = layout_for(release, tables())
    assert layout is not None, release
    known = database().resolve_release(release)
    files = {"nvcuda.dll", "nvml.dll", *layout.files}
    if any(name == "nvapi64.dll" for name in layout.injected):
        files.add("nvapi64.dll")
    helpers = {layout.launcher, "zluda_redirect.dll"}
    if any(row.file == "nvcudart_hybrid64.dll" and row.release == release for row in tables().libraries):
        helpers.add("nvcudart_hybrid64.dll")
    wanted = set(spec["only"]) if "only" in spec else files | helpers
    for name in sorted(wanted - set(spec.get("remove", ()))):
        data = _zluda_file(name, release, known, spec)
        place(root, rf"{path}\{spec.get('names', {}).get(name, name)}", data)


def _zluda_file(name: str, release: str, known: Any, spec: Mapping[str, Any]) -> bytes:
    library_name = library_of(name)
    if name in spec.get("nvidia", ()):
        return _pe(name, exported=("cublasCreate_v2",), version=("NVIDIA Corporation", "6.14.11.1290"))
    if not library_name:
        return _pe(name, exported=("DllMain",) if name.endswith(".dll") else ())
    names = tuple(sorted(database().exported(known, library_name)))
    imports, delayed = _asks(release, name)
    imports.update({dll: tuple(functions) for dll, functions in spec.get("asks", {}).get(name, {}).items()})
    delayed.update({dll: tuple(functions) for dll, functions in spec.get("delay_asks", {}).get(name, {}).items()})
    machine = "x86" if name in spec.get("x86", ()) else "x64"
    commit = known.commit.encode() if library_name == "nvcuda" and not spec.get("no_commit") else b""
    return _pe(
        name, tuple(imports.items()), tuple(delayed.items()), names or ("DllMain",), machine=machine, data=commit
    )


def build(root: Path, pc: Mapping[str, Any]) -> Path:
    """Write the PC that matrix.yaml describes under ``root``; returns it."""
    root.mkdir(parents=True, exist_ok=True)
    adapters = []
    for one in pc.get("gpus", ["rx9060xt"]):
        name, extra = (one, {}) if isinstance(one, str) else next(iter(one.items()))
        adapters.append({"index": len(adapters), "driver_version": "32.0.21025.1024", **ADAPTERS[name], **extra})
    driver = pc.get("driver", ["6.4"])
    for version in driver:
        name, short = {"5.7": "amdhip64.dll", "7.1": "amdhip64_7.dll"}.get(version, "amdhip64_6.dll"), version
        place(root, rf"C:\Windows\System32\{name}", runtime(name, short, pc.get("driver_lacks", ())))
    for name in pc.get("system32", ["vcruntime140.dll", "msvcp140.dll", "kernel32.dll"]):
        place(root, rf"C:\Windows\System32\{name}", b"MZ")
    for name in pc.get("nvidia_system32", ()):
        place(
            root,
            rf"C:\Windows\System32\{name}",
            _pe(name, exported=("x",), version=("NVIDIA Corporation", "32.0.15.9636")),
        )
    sdks = pc.get("sdks", [{"version": "6.4"}])
    for sdk in sdks:
        write_sdk(root, sdk)
    zluda = pc.get("zluda", [{}])
    for folder in zluda:
        write_zluda(root, folder)
    for path, kind in pc.get("files", {}).items():
        company = {"nvidia": "NVIDIA Corporation"}.get(kind, "")
        data = _pe(path.rpartition("\\")[2], exported=("x",), version=(company, "1.0.0.0")) if kind != "empty" else b""
        place(root, path, data)
    env = {"PATH": [r"C:\Windows\System32", r"C:\Windows", *pc.get("path", ())], **pc.get("env", {})}
    if "HIP_PATH" not in env and sdks:
        env["HIP_PATH"] = sdks[0].get("path", rf"C:\Program Files\AMD\ROCm\{sdks[0]['version']}")
    if env.get("HIP_PATH") == "unset":
        del env["HIP_PATH"]
    content = {"os_build": pc.get("os_build", "10.0.26200.8000"), "env": env, "adapters": adapters}
    if "hipinfo" in pc:
        content["hipinfo"] = pc["hipinfo"]
    (root / "host.yaml").write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
    return root
