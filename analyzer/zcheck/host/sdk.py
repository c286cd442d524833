"""HIP SDK folders of a PC: where they are, which version and how that is known, what is in them."""

from __future__ import annotations

import ntpath
import re
from collections.abc import Iterable

import msgspec

from zcheck.host.dlls import Dlls
from zcheck.host.source import Source, is_dir, is_file, join, key, normal
from zcheck.model.base import Problem
from zcheck.model.host import Component, DllFact, HipRoot, HostTables

RUNTIMES = ("amdhip64_7.dll", "amdhip64_6.dll", "amdhip64.dll")
"""HIP runtime names, newest first; the number is the HIP major version, the bare name is HIP 5"""
HIPBLASLT = ("hipblaslt.dll", "libhipblaslt.dll")
"""either name, as the version has it (design section 8)"""
# Only DLLs that ZLUDA or a diagnosis needs are opened; the rest is told by name and size.
_OPENED = re.compile(r"^(amdhip64(_\d)?|rocblas|(lib)?hipblaslt|rocsparse|miopen|hiprtc\d*)\.dll$", re.IGNORECASE)
_GFX = re.compile(r"(?<![0-9a-z])gfx([0-9a-f]{3,5})(?![0-9a-f])", re.IGNORECASE)
_KERNEL_FILE = re.compile(
    r"^(TensileLibrary|Kernels\.so|extop_|TensileLiteLibrary).*\.(dat|hsaco|co|yaml|msgpack)$|^gfx", re.IGNORECASE
)
_VERSION = re.compile(r"(\d+\.\d+)(?:\.\d+)*")
_FOLDERS = (("Program Files\\AMD\\ROCm", "Program Files"), ("ROCm", "ROCm folder"))


def generation_of_runtime(name: str) -> str:
    """``6`` of amdhip64_6.dll, ``5`` of amdhip64.dll, empty of anything else."""
    match = re.fullmatch(r"amdhip64(?:_(\d+))?\.dll", name.casefold())
    return (match.group(1) or "5") if match else ""


def candidates(source: Source, hip_dir: str | None) -> list[tuple[str, str]]:
    """Folders that may be HIP SDKs with what led there, each once: ``--hip-dir``, variables, AMD's places, PATH."""
    found: list[tuple[str, str]] = []
    if hip_dir:
        found.append((normal(hip_dir), "--hip-dir"))
    for name in sorted(source.env, key=lambda name: (name != "HIP_PATH", name)):
        if name.startswith("HIP_PATH") or name == "ROCM_PATH":
            found.append((normal(source.env[name]), name))
    for drive in source.drives():
        for folder, by in _FOLDERS:
            for entry in source.listing(join(drive, folder)):
                if entry.is_dir and is_dir(source, join(drive, folder, entry.name, "bin")):
                    found.append((join(drive, folder, entry.name), by))
        for entry in source.listing(drive):
            likely = entry.is_dir and entry.name.casefold().startswith(("therock", "hip_sdk", "hip-sdk", "rocm"))
            if likely and is_dir(source, join(drive, entry.name, "bin")):
                found.append((join(drive, entry.name), "folder name"))
    for entry_path in source.path:
        if ntpath.basename(entry_path).casefold() == "bin" and any(
            is_file(source, join(entry_path, name)) for name in ("rocblas.dll", "hipInfo.exe")
        ):
            found.append((ntpath.dirname(entry_path), "PATH"))
    seen: dict[str, tuple[str, str]] = {}
    for path, by in found:
        if path:
            seen.setdefault(key(path), (path, by))
    return list(seen.values())


def _version(path: str, names: dict[str, str]) -> tuple[str, str, bool]:
    """Version, what says so, and whether the folder looks like a TheRock build.

    ``hiprtc0604.dll`` and ``amd_comgr0604.dll`` carry the SDK version in their names; the folder name comes after that.
    """
    therock = "therock" in path.casefold()
    for name in sorted(names):
        match = re.fullmatch(r"(?:hiprtc|amd_comgr)(\d\d)(\d\d)\.dll", name)
        if match:
            return f"{int(match.group(1))}.{int(match.group(2))}", names[name], therock
    match = _VERSION.match(ntpath.basename(path)) if not therock else _VERSION.search(ntpath.basename(path))
    return (match.group(1), "folder name", therock) if match else ("", "", therock)


def kernel_gfx(source: Source, folder: str) -> tuple[str, ...]:
    """gfx names in the kernel files of a ``library`` folder: rocBLAS's or hipBLASLt's, one level of gfx folders too."""
    found: set[str] = set()
    for entry in source.listing(folder):
        if entry.is_dir:
            if _GFX.fullmatch(entry.name) and source.listing(join(folder, entry.name)):
                found.add(entry.name.lower())
        elif _KERNEL_FILE.match(entry.name):
            found.update(f"gfx{number.lower()}" for number in _GFX.findall(entry.name))
    return tuple(sorted(found))


def component_dlls(rows: Iterable[Component]) -> dict[str, str]:
    """DLL name in lower case to component, over the rows of all versions; hipBLASLt under both names."""
    names = {dll.casefold(): row.name for row in rows for dll in row.dlls}
    names.update(dict.fromkeys(HIPBLASLT, "hipBLASLt"))
    names.setdefault("miopen.dll", "MIOpen")
    names.update(dict.fromkeys(RUNTIMES, "HIP runtime"))
    return names


def known_version(version: str, tables: HostTables) -> str:
    """The version as the component table has it (``6.4`` for 6.4.2), or empty."""
    versions = {row.version for row in tables.components if row.name != "whole SDK"}
    return version if version in versions else ""


def read_root(path: str, by: str, dlls: Dlls, tables: HostTables) -> HipRoot:
    """The facts of one SDK folder. A folder that is not there or has no ``bin`` comes back with the problem said."""
    source = dlls.source
    if not is_dir(source, path):
        return HipRoot(path=path, found_by=by, problems=(Problem(path, "no such folder"),))
    bin_folder = join(path, "bin")
    if not is_dir(source, bin_folder):
        inside = any(is_file(source, join(path, name)) for name in ("rocblas.dll", "hipInfo.exe", *RUNTIMES))
        reason = "is itself the bin folder; the variable takes the folder above it" if inside else "has no bin folder"
        return HipRoot(path=path, found_by=by, problems=(Problem(path, reason),))
    files = [entry for entry in source.listing(bin_folder) if not entry.is_dir]
    names = {entry.name.casefold(): entry.name for entry in files}
    version, version_by, therock = _version(path, names)
    known = component_dlls(tables.components)
    found: list[DllFact] = []
    components: dict[str, None] = {}
    for entry in files:
        folded = entry.name.casefold()
        component = known.get(folded)
        if component is None and re.fullmatch(r"hiprtc\d{4}\.dll", folded):
            component = "hipRTC"
        if component:
            components[component] = None
        if _OPENED.match(entry.name):
            found.append(dlls.brief(join(bin_folder, entry.name)))
        elif component:
            found.append(DllFact(name=entry.name, path=join(bin_folder, entry.name), size=entry.size))
    if "MIOpen" in components and any(key(row.path) == key(join(bin_folder, "MIOpen.dll")) for row in found):
        therock = True  # no official HIP SDK for Windows has MIOpen (hip_sdk table), AMD's TheRock builds do
    table_version = known_version(version, tables)
    expected = [
        row.name for row in tables.components if row.version == table_version and row.included == "yes" and row.dlls
    ]
    runtime = next((name for name in RUNTIMES if name in names), "")
    generation = generation_of_runtime(runtime) or version.partition(".")[0]
    hipinfo = names.get("hipinfo.exe", "")
    return HipRoot(
        path=path,
        found_by=by,
        kind="therock" if therock else "sdk" if version else "unknown",
        version=version,
        version_by=version_by,
        patch=_patch(table_version, components, tables) if not therock else "",
        generation=generation,
        dlls=tuple(sorted(found, key=lambda row: row.name.casefold())),
        components=tuple(sorted(components)),
        missing=tuple(sorted({name for name in expected if name not in components})),
        rocblas_gfx=kernel_gfx(source, join(bin_folder, "rocblas", "library")),
        hipblaslt_gfx=kernel_gfx(source, join(bin_folder, "hipblaslt", "library")),
        hipinfo=join(bin_folder, hipinfo) if hipinfo else "",
    )


def _patch(version: str, components: Iterable[str], tables: HostTables) -> str:
    """``6.4.1`` for a 6.4 without hipBLASLt, which came with 6.4.2; empty when nothing tells."""
    for row in tables.components:
        match = re.match(r"from (\d+\.\d+)\.(\d+)\b", row.note)
        if row.version == version and row.included == "yes" and match and row.name not in components:
            return f"{match.group(1)}.{int(match.group(2)) - 1}" if int(match.group(2)) else ""
    return ""


def read_roots(source: Source, hip_dir: str | None, dlls: Dlls, tables: HostTables) -> tuple[HipRoot, ...]:
    """All SDK folders of the PC, ``--hip-dir`` and HIP_PATH first.

    ``HIP_PATH_64`` and the like that lead nowhere are left out: the installer leaves them behind.
    """
    roots = [read_root(path, by, dlls, tables) for path, by in candidates(source, hip_dir)]
    return tuple(root for root in roots if not root.problems or root.found_by in ("HIP_PATH", "--hip-dir"))


def active_root(roots: tuple[HipRoot, ...], source: Source) -> HipRoot | None:
    """The SDK that ZLUDA uses: the one of ``--hip-dir`` or HIP_PATH; None when neither leads to one."""
    for by in ("--hip-dir", "HIP_PATH"):
        for root in roots:
            if root.found_by == by and not root.problems:
                return root
    wanted = key(source.env.get("HIP_PATH", ""))
    return next((root for root in roots if wanted and key(root.path) == wanted and not root.problems), None)


def with_kernels(root: HipRoot, source: Source) -> HipRoot:
    """The root with the kernel files that ROCBLAS_TENSILE_LIBPATH and HIPBLASLT_TENSILE_LIBPATH point to instead."""
    changed: dict[str, tuple[str, ...]] = {}
    for variable, field in (("ROCBLAS_TENSILE_LIBPATH", "rocblas_gfx"), ("HIPBLASLT_TENSILE_LIBPATH", "hipblaslt_gfx")):
        if source.env.get(variable):
            changed[field] = kernel_gfx(source, source.env[variable])
    return msgspec.structs.replace(root, **changed) if changed else root
