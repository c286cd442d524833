"""Reads what the plan needs to know from the disk: the program, the ZLUDA folder, the HIP SDK, files in place."""

from __future__ import annotations

import fnmatch
import mmap
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from zcheck.errors import InputError
from zcheck.launch.disk import sha256_of
from zcheck.model.base import DEFAULT_LIMITS, Limits
from zcheck.model.facts import Machine
from zcheck.model.launch import Folder, FolderFile, HipInstallation, Program

# IMAGE_FILE_HEADER.Machine (Microsoft, "PE Format")
_MACHINES: dict[int, Machine] = {0x8664: "x64", 0x14C: "x86", 0xAA64: "arm64", 0xA641: "arm64ec", 0x1C4: "arm"}
_ELEVATED = re.compile(rb"requestedExecutionLevel[^>]{0,200}level\s*=\s*[\"']requireAdministrator", re.IGNORECASE)
_TENSILE = re.compile(r"gfx[0-9a-f]{3,5}")
# Folder levels below the program in which signs of anti-cheat programs are looked for
_DEPTH = 2


def pe_machine(path: Path) -> Machine | None:
    """The machine of a PE file, None when it is none; raises OSError."""
    with open(path, "rb") as handle:
        head = handle.read(64)
        if len(head) < 64 or head[:2] != b"MZ":
            return None
        handle.seek(int.from_bytes(head[60:64], "little"))
        signature = handle.read(6)
    if len(signature) < 6 or signature[:4] != b"PE\0\0":
        return None
    return _MACHINES.get(int.from_bytes(signature[4:6], "little"), "other")


def program(path: Path, signs: Mapping[str, str] | None = None, limits: Limits = DEFAULT_LIMITS) -> Program:
    """The program at ``path``. ``signs``: file name pattern → anti-cheat product. Raises InputError."""
    try:
        full = Path(os.path.abspath(path))  # noqa: PTH100 - links stay as the user named them
        if not full.is_file():
            raise InputError(f"{path}: {'is a folder, name the program in it' if full.is_dir() else 'no such file'}")
        machine = pe_machine(full)
        batch = full.suffix.lower() in (".bat", ".cmd")
        packaged = (
            any(part.lower() == "windowsapps" for part in full.parts) or (full.parent / "AppxManifest.xml").exists()
        )
        return Program(
            path=str(full),
            name=full.name,
            sha256=sha256_of(full),
            kind="pe" if machine else "native",
            machine=machine or "other",
            elevated=machine is not None and _wants_administrator(full),
            packaged=packaged,
            batch=batch,
            anti_cheat=_signs(full.parent, signs or {}, limits.entries),
        )
    except OSError as error:
        raise InputError(f"{path}: {error.strerror or error}") from None


def _wants_administrator(path: Path) -> bool:
    with open(path, "rb") as handle:
        if not os.fstat(handle.fileno()).st_size:
            return False
        with mmap.mmap(handle.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _ELEVATED.search(data) is not None


def _signs(folder: Path, signs: Mapping[str, str], bound: int) -> tuple[str, ...]:
    """Products whose files lie in the program's folder or little below it, each with the file that tells."""
    patterns = {pattern.lower(): product for pattern, product in signs.items()}
    found: dict[str, str] = {}
    queue, seen = [(folder, 0)], 0
    while queue and patterns:
        current, depth = queue.pop()
        try:
            entries = sorted(os.scandir(current), key=lambda entry: entry.name)
        except OSError:
            continue
        for entry in entries:
            seen += 1
            if seen > bound:
                return tuple(found.values())
            for pattern, product in patterns.items():
                if product not in found and fnmatch.fnmatchcase(entry.name.lower(), pattern):
                    found[product] = f"{product} ({entry.name})"
            if depth < _DEPTH and entry.is_dir(follow_symlinks=False):
                queue.append((Path(entry.path), depth + 1))
    return tuple(sorted(found.values()))


def folder(path: Path, names: Iterable[str] | None = None) -> Folder:
    """What lies in a folder; ``names`` (without case) limits what is hashed. A folder that is not there is empty."""
    wanted = None if names is None else {name.lower() for name in names}
    files = []
    try:
        entries = sorted(os.scandir(path), key=lambda entry: entry.name)
    except OSError:
        return Folder(str(path), writable=False)
    for entry in entries:
        if wanted is not None and entry.name.lower() not in wanted:
            continue
        try:
            if not entry.is_file():
                continue
            full = Path(entry.path)
            files.append(
                FolderFile(entry.name, entry.stat().st_size, sha256_of(full), pe_machine(full), entry.is_symlink())
            )
        except OSError:
            files.append(FolderFile(entry.name, 0, ""))
    return Folder(
        path=str(path),
        files=tuple(files),
        link=_is_link(path),
        writable=os.access(path, os.W_OK),
        free=shutil.disk_usage(path).free,
    )


def _is_link(path: Path) -> bool:
    if path.is_symlink():
        return True
    if sys.platform == "win32":  # a junction is a reparse point, but no symbolic link
        return bool(path.lstat().st_file_attributes & 0x400)
    return False


def zluda_folder(path: Path, names: Iterable[str]) -> Folder:
    """The ZLUDA folder's files among ``names``; names with a folder (``trace/nvcuda.dll``) are looked up there."""
    wanted = tuple(names)
    deep = [name for name in wanted if "/" in name]
    result = folder(path, [name for name in wanted if "/" not in name])
    extra = []
    for name in deep:
        below, _, base = name.rpartition("/")
        found = folder(path / below, [base]).get(base)
        if found:
            extra.append(FolderFile(name, found.size, found.sha256, found.machine, found.link))
    return Folder(result.path, (*result.files, *extra), result.link, result.writable, result.free)


def hip_installation(
    root: Path | None, system32: Path | None = None, *, gpu: str = "", gpu_index: int | None = None
) -> HipInstallation:
    """The HIP SDK at ``root`` (the folder that holds ``bin``) and AMD's runtime DLLs in System32, names only."""

    def names(place: Path | None) -> list[str]:
        try:
            return sorted(entry.name.lower() for entry in os.scandir(place)) if place else []
        except OSError:
            return []

    binaries = root / "bin" if root else None
    rocblas = binaries / "rocblas" / "library" if binaries else None
    hipblaslt = binaries / "hipblaslt" / "library" if binaries else None
    targets = {match.group() for name in names(rocblas) for match in [_TENSILE.search(name)] if match}
    return HipInstallation(
        root=str(root) if root else "",
        version=root.name if root and re.fullmatch(r"\d+(\.\d+)*", root.name) else "",
        files=tuple(name for name in names(binaries) if name.endswith(".dll")),
        driver_files=tuple(name for name in names(system32) if name.startswith("amdhip64")),
        rocblas_library=str(rocblas) if rocblas and rocblas.is_dir() else "",
        hipblaslt_library=str(hipblaslt) if hipblaslt and hipblaslt.is_dir() else "",
        tensile=tuple(sorted(targets)),
        gpu=gpu,
        gpu_index=gpu_index,
    )
