"""Lines on what gets in the way: PATH, leftovers of NVIDIA, known bad builds, paths that some part cannot take."""

from __future__ import annotations

import ntpath
import os
import re
from collections.abc import Iterable

from zcheck.host.check_gpu import amd, label
from zcheck.host.dlls import Dlls, by_nvidia, version_of
from zcheck.host.keys import known
from zcheck.host.release import LAUNCHERS, library_of
from zcheck.host.source import Source, is_file, join, key
from zcheck.model.host import Adapter, DllFact, HipRoot, HostCheck, HostTables, KnownBad, ZludaFolder

MAX_PATH = 260
"""characters with the closing zero: what LoadLibraryEx takes without the \\\\?\\ form (Windows' documentation)"""
_LONGEST_NAME = 24
"""characters of the longest file name in a ZLUDA or HIP bin folder, with the backslash"""
NVIDIA_DRIVER = ("nvcuda.dll", "nvml.dll", "nvapi64.dll", "nvcuvid.dll", "nvoptix.dll")


def system_dlls(dlls: Dlls, runtimes: Iterable[str]) -> tuple[DllFact, ...]:
    """HIP runtimes and NVIDIA driver DLLs in System32."""
    folder = "C:\\Windows\\System32"
    return tuple(
        dlls.brief(join(folder, name))
        for name in (*runtimes, *NVIDIA_DRIVER)
        if is_file(dlls.source, join(folder, name))
    )


def check_search_path(source: Source, folders: tuple[ZludaFolder, ...], dlls: Dlls) -> list[HostCheck]:
    """ZLUDA and CUDA folders on PATH."""
    checks: list[HostCheck] = []
    given = {key(folder.path) for folder in folders}
    for path in dict.fromkeys(source.path):
        nvcuda = dlls.facts(join(path, "nvcuda.dll")) if "system32" not in path.casefold() else None
        zluda = key(path) in given or any(is_file(source, join(path, name)) for name in LAUNCHERS)
        if (zluda or nvcuda is not None) and not (nvcuda is not None and by_nvidia(nvcuda)):
            checks.append(
                HostCheck(
                    known("zluda-on-path"),
                    "WARN",
                    f"{path} is on PATH: every program that asks for nvcuda.dll gets ZLUDA, wanted or not",
                    value=path,
                    subject=path,
                    fix=("Take it off PATH and start programs through zluda.exe or zcheck run.",),
                    cure="setup",
                )
            )
        elif re.search(r"nvidia gpu computing toolkit\\cuda", path, re.IGNORECASE) or _has_cuda(source, path):
            checks.append(
                HostCheck(
                    known("cuda-on-path"),
                    "WARN",
                    f"{path} is on PATH: programs may load NVIDIA's libraries from there instead of ZLUDA's",
                    value=path,
                    subject=path,
                    fix=("Take it off PATH for the program that is to run on ZLUDA.",),
                    cure="setup",
                    confidence="medium",
                )
            )
    return checks


def _has_cuda(source: Source, path: str) -> bool:
    return any(re.match(r"(cudart|cublas)64_\d+\.dll$", entry.name, re.IGNORECASE) for entry in source.listing(path))


def check_leftovers(
    source: Source, system: tuple[DllFact, ...], adapters: Iterable[Adapter], dlls: Dlls
) -> list[HostCheck]:
    """NVIDIA's driver DLLs without an NVIDIA card, ZLUDA's in System32 or in the CUDA toolkit."""
    checks: list[HostCheck] = []
    nvidia = any(adapter.vendor == "NVIDIA" for adapter in adapters)
    for row in system:
        if row.name.casefold() not in NVIDIA_DRIVER:
            continue
        facts = dlls.facts(row.path)
        if facts is not None and by_nvidia(facts):
            if not nvidia:
                checks.append(
                    HostCheck(
                        known("nvidia-leftover"),
                        "WARN",
                        f"{row.path} {version_of(facts)} is left from an NVIDIA driver, and no NVIDIA GPU is here: "
                        "programs not started through zluda.exe find it before ZLUDA",
                        value=row.name,
                        subject=row.path,
                        fix=("Uninstall what is left of the NVIDIA driver.",),
                        cure="setup",
                        sources=("https://github.com/patientx/ComfyUI-Zluda/issues/400",),
                    )
                )
        elif facts is not None and library_of(row.name):
            checks.append(
                HostCheck(
                    known("zluda-in-system32"),
                    "WARN",
                    f"{row.path} is not NVIDIA's: a ZLUDA copied into System32 serves every program, and no "
                    "ZLUDA update renews it",
                    value=row.name,
                    subject=row.path,
                    fix=("Delete it and start programs through zluda.exe.",),
                    cure="setup",
                )
            )
    toolkit = source.env.get("CUDA_PATH", "")
    for sub in ("bin", "bin\\x64"):
        folder = join(toolkit, sub) if toolkit else ""
        for entry in source.listing(folder) if folder else ():
            facts = dlls.facts(join(folder, entry.name)) if library_of(entry.name) and not entry.is_dir else None
            if facts is not None and not by_nvidia(facts):
                checks.append(
                    HostCheck(
                        known("zluda-in-cuda-toolkit"),
                        "WARN",
                        f"{entry.name} in {folder} is not NVIDIA's: programs load from their own folder first, "
                        "and the toolkit loses its DLL",
                        value=folder,
                        subject=entry.name,
                        fix=("Put NVIDIA's file back and start the program through zluda.exe.",),
                        cure="setup",
                        sources=("https://github.com/vosen/ZLUDA/issues/328",),
                    )
                )
                break
    return checks


def _matches(row: KnownBad, adapter: Adapter) -> bool:
    if row.generation and adapter.generation != row.generation:
        return False
    if row.kind == "driver":
        return row.value in (adapter.software_version, adapter.driver_version)
    if row.kind == "driver-edition":
        edition = adapter.software_edition.casefold()
        return bool(re.search(rf"\b{re.escape(row.value.casefold())}\b", edition))
    return False


def check_known_bad(
    os_build: str,
    adapters: Iterable[Adapter],
    active: HipRoot | None,
    folders: tuple[ZludaFolder, ...],
    tables: HostTables,
) -> list[HostCheck]:
    """Builds of Windows, drivers and SDKs that people report as broken (rows of known_bad)."""
    mine = amd(adapters)
    fork = any(folder.release.startswith("lshqqytiger") for folder in folders)
    checks: list[HostCheck] = []
    for row in tables.known_bad:
        if row.zluda == "fork" and not fork:
            continue
        sources = tuple(part.strip() for part in row.source.split(" ; "))
        if row.kind == "os-build" and _same_build(os_build, row.value):
            checks.append(_bad("known-bad-os", row, f"Windows build {os_build} ({row.name})", os_build, sources))
        elif row.kind == "hip-sdk" and active is not None and active.kind != "therock" and active.version == row.value:
            for adapter in mine:
                if not row.generation or adapter.generation == row.generation:
                    what = f"{row.name} with {label(adapter)}"
                    checks.append(_bad("known-bad-sdk", row, what, row.value, sources))
        else:
            for adapter in mine:
                if _matches(row, adapter):
                    what = f"{row.name} with {label(adapter)}"
                    checks.append(_bad("known-bad-driver", row, what, row.value, sources))
    return checks


def _same_build(mine: str, bad: str) -> bool:
    """``26200.9445`` and ``10.0.26200.9445`` are one build; a build without its revision matches none."""
    short = [re.sub(r"^10\.0\.", "", text.strip()) for text in (mine, bad)]
    return bool(short[0]) and short[0] == short[1]


def _bad(name: str, row: KnownBad, what: str, value: str, sources: tuple[str, ...]) -> HostCheck:
    return HostCheck(
        known(name),
        "MISS" if row.confidence == "medium" else "WARN",
        f"{what}: people report {row.effect}",
        value=value,
        fix=(row.fix[:1].upper() + row.fix[1:] + ".",),
        cure="replace" if row.confidence == "medium" else "",
        sources=sources,
        confidence=row.confidence,
    )


def check_paths(source: Source, active: HipRoot | None, folders: tuple[ZludaFolder, ...]) -> list[HostCheck]:
    """Folders that a part of the stack cannot take: which part and why."""
    checks: list[HostCheck] = []
    places = [(folder.path, "ZLUDA") for folder in folders] + ([(active.path, "HIP")] if active else [])
    for path, part in places:
        if not path.isascii():
            why = (
                "zluda.exe hands the paths of its DLLs to Windows as UTF-8 through an ANSI call, "
                "so the program does not start"
                if part == "ZLUDA"
                else "rocBLAS and hipBLASLt open their kernel files by narrow paths, "
                "which need not reach a folder named like this"
            )
            checks.append(
                HostCheck(
                    known("path-non-ascii"),
                    "MISS" if part == "ZLUDA" else "WARN",
                    f"{path} has letters outside ASCII: {why}",
                    value=path,
                    subject=part,
                    fix=(f"Move {part} to a folder with plain letters, for example C:\\{part.lower()}.",),
                    cure="setup",
                    confidence="medium",
                )
            )
        longest = len(path) + _LONGEST_NAME + (len("\\bin\\rocblas\\library\\") + 60 if part == "HIP" else 0)
        if longest >= MAX_PATH:
            checks.append(
                HostCheck(
                    known("path-long"),
                    "WARN",
                    f"{path} is {len(path)} characters long: with file names it passes the {MAX_PATH} that "
                    + ("LoadLibraryEx takes" if part == "ZLUDA" else "opening kernel files takes"),
                    value=path,
                    subject=part,
                    fix=(f"Move {part} to a short folder.",),
                    cure="setup",
                    confidence="medium",
                )
            )
    for folder in folders:
        place = source.local(folder.path)
        if folder.kind == "staged" and place is not None and not os.access(place, os.W_OK):
            checks.append(
                HostCheck(
                    known("path-read-only"),
                    "WARN",
                    f"{folder.path} cannot be written to: zcheck run cannot place or take back DLLs there",
                    value=folder.path,
                    subject=ntpath.basename(folder.path),
                    fix=("Start the program through zluda.exe, which writes nothing into its folder.",),
                    cure="setup",
                )
            )
    return checks


def check_off_path(
    source: Source, active: HipRoot | None, folders: tuple[ZludaFolder, ...], dlls: Dlls
) -> list[HostCheck]:
    """A ZLUDA that imports rocBLAS and the like by its import table, and an SDK whose bin is not on PATH."""
    if active is None:
        return []
    bin_folder = join(active.path, "bin")
    if any(key(entry) == key(bin_folder) for entry in source.path):
        return []
    checks: list[HostCheck] = []
    for folder in folders:
        for row in folder.files:
            facts = dlls.facts(join(folder.path, row.name))
            tabled = {entry.dll for entry in facts.imports if not entry.delay} if facts else set()
            ordinary = (folder.path, *source.path, "C:\\Windows\\System32")
            needed = sorted(
                name
                for name in row.wants
                if name in tabled
                and is_file(source, join(bin_folder, name))
                and not any(is_file(source, join(place, name)) for place in ordinary)
            )
            if needed:
                checks.append(
                    HostCheck(
                        known("hip-sdk-off-path"),
                        "MISS",
                        f"{row.name} in {folder.path} imports {', '.join(needed)}; {bin_folder} has it but is "
                        "not on PATH, and this ZLUDA does not read HIP_PATH",
                        value=bin_folder,
                        subject=row.name,
                        fix=(f"Add {bin_folder} to PATH of the program.",),
                        cure="setup",
                        sources=("https://github.com/AUTOMATIC1111/stable-diffusion-webui/issues/14946",),
                    )
                )
                break
    return checks
