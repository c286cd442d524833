"""From the path that a user names to the bundle."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath

from zcheck.discover.kinds import LIBRARIES, PROGRAMS
from zcheck.discover.python_env import Site, dll_directories, has_distributions, site_folders, site_root
from zcheck.discover.walk import Walk
from zcheck.errors import InputError, UsageError
from zcheck.model.base import DEFAULT_LIMITS, Limits, Skipped
from zcheck.model.bundle import Bundle, BundleFile
from zcheck.model.text import encodable, shown

MAX_AROUND_FILE = 100_000
"""entries looked at around a named file; a folder that is named is walked up to Limits.entries"""
# Programs that packaging tools put beside every application; nobody asks whether they use CUDA.
_HELPERS = {
    "t32.exe", "t64.exe", "t64-arm.exe", "w32.exe", "w64.exe", "w64-arm.exe",  # pip's launchers (distlib)
    "cli.exe", "cli-32.exe", "cli-64.exe", "cli-arm64.exe",  # setuptools
    "gui.exe", "gui-32.exe", "gui-64.exe", "gui-arm64.exe",
    "vc_redist.x64.exe", "vc_redist.x86.exe", "vc_redist.arm64.exe", "vcredist_x64.exe", "vcredist_x86.exe",
}  # fmt: skip
_RUNTIMES = ("vcruntime", "msvcp", "msvcr", "concrt", "vccorlib", "vcomp", "ucrtbase", "api-ms-win-", "libiomp5")
_PYTHON_SCRIPTS = (".py", ".pyw", ".vpy")
_SHARED_FOLDERS = {"downloads", "desktop", "documents", "temp", "tmp", "bin"}


def discover(target: Path, limits: Limits = DEFAULT_LIMITS) -> Bundle:
    """The bundle of a program, a library or a folder.

    Raises InputError when the path cannot be looked at and UsageError when a folder holds nothing to judge.
    """
    name = target.name or str(target)
    try:
        is_folder = target.is_dir()
        exists = is_folder or target.exists()
    except (OSError, ValueError) as error:
        raise InputError(f"{shown(name)} cannot be read: {getattr(error, 'strerror', None) or error}") from None
    if not exists:
        why = "it is a link that leads nowhere" if target.is_symlink() else "no such file or folder"
        raise InputError(f"{shown(name)} cannot be read: {why}")
    if not encodable(str(target)):
        raise InputError(f"{shown(name)} cannot be judged: its path is not valid Unicode")
    return _folder(target, limits) if is_folder else _file(target, limits)


def _file(target: Path, limits: Limits) -> Bundle:
    program = target.name.lower().endswith(PROGRAMS)
    site = None if program else site_root(_absolute(target).parent)
    if site is not None:
        return _in_site(target, site, limits)
    root = _environment(target) if program else target.parent
    walk = Walk(root, min(MAX_AROUND_FILE, limits.entries))
    walk.add(recursive=not _shared(root))
    return bundle_of(root, (_relative(target, root),), walk, program=program)


def _in_site(target: Path, site: Path, limits: Limits) -> Bundle:
    """A library in a folder of packages: its own package and those it can reach, not the whole environment."""
    absolute = _absolute(target)
    entry = absolute.relative_to(site).as_posix()
    top = entry.partition("/")[0]
    walk = Walk(site, min(MAX_AROUND_FILE, limits.entries))
    if "/" in entry:
        tops = Site(site).belonging(top)
    else:  # a module of its own, right in the folder of packages
        walk.add(recursive=False)
        walk.skipped.clear()
        tops = [name for name in Site(site).belonging(top) if name != top]
    for folder in tops:
        walk.add(folder)
    directories = dll_directories(walk.files, first=top if "/" in entry else "")
    return _make(site, (entry,), walk, directories, "python-environment")


def _folder(target: Path, limits: Limits) -> Bundle:
    walk = Walk(target, limits.entries)
    walk.add()
    files = list(walk.files.values())
    programs: list[str] = []
    for file in files:
        if file.kind != "pe" or not file.path.lower().endswith(PROGRAMS):
            continue
        if reason := helper(file.path, walk):
            walk.skipped.append(Skipped(path=shown(file.path), reason=reason))
        else:
            programs.append(file.path)
    entries = programs or libraries_of(files)
    if not entries:
        if walk.files or walk.skipped:
            raise nothing_to_judge(target, files)
        raise UsageError(f"{shown(target.name or str(target))} is an empty folder")
    return bundle_of(target, tuple(entries), walk, program=bool(programs))


def nothing_to_judge(folder: Path, files: Iterable[BundleFile]) -> UsageError:
    """What is said of a folder without a program or library, with what to name instead where that can be told."""
    reason = f"{shown(folder.name or str(folder))} holds no Windows program or library to judge"
    told = scripts_only(files)
    return UsageError(f"{reason}, {told}" if told else reason)


def scripts_only(files: Iterable[BundleFile]) -> str:
    """Of files without a program among them: that these are scripts or models, and what to check in their place; empty
    where there are none of these either."""
    kinds = {"python" if file.path.lower().endswith(_PYTHON_SCRIPTS) else file.kind for file in files}
    if "python" in kinds:
        what = "Python scripts and models" if "model" in kinds else "Python scripts"
        return f"only {what}: check the python.exe that runs them, or the folder of its environment"
    return "only models: check the program that loads them" if "model" in kinds else ""


def libraries_of(files: Iterable[BundleFile]) -> list[str]:
    """Libraries that a host loads, where there is no program: without those that only serve others, as names tell."""
    found: list[str] = []
    for file in files:
        path = PurePosixPath(file.path.lower())
        if file.kind != "pe" or path.suffix not in LIBRARIES:
            continue
        in_vendor = "nvidia" in path.parts[:-1] and "bin" in path.parts[:-1]
        vendored = path.suffix == ".dll" and (in_vendor or path.name.startswith(_RUNTIMES))
        mangled = path.suffix == ".dll" and path.parent.name.endswith(".libs")
        if not vendored and not mangled:
            found.append(file.path)
    return found or [file.path for file in files if file.kind == "pe"]


def helper(path: str, walk: Walk) -> str:
    """Why a program of a folder is none that a person asks about; empty for all others."""
    folder, _, name = path.rpartition("/")
    lower = name.lower()
    if lower in _HELPERS or lower.startswith(("unins0", "uninstall")):
        return "a helper of the installer or package manager"
    if folder.lower().endswith("venv/scripts/nt"):
        return "a template for virtual environments"
    if lower == "pythonw.exe" and f"{folder}/python.exe".lstrip("/") in walk.files:
        return "the same interpreter as the python.exe beside it"
    outer, _, own = folder.rpartition("/")
    places = (f"{outer}/python.exe".lstrip("/"), f"{folder}/python.exe")
    if own.lower() == "scripts" and lower != "python.exe" and any(place in walk.files for place in places):
        return "a launcher of an installed Python package"
    return ""


def bundle_of(root: Path, entries: tuple[str, ...], walk: Walk, program: bool) -> Bundle:
    """The bundle of a walk's files. ``program``: an entry is a program, not only libraries that a host loads."""
    sites = site_folders(root)
    directories: list[str] = []
    kind = "folder"
    if sites or root.name.lower() == "site-packages" or has_distributions(root):
        kind = "python-environment"
        directories = dll_directories(walk.files, sites[0] if sites else "")
    if program:
        # PyInstaller's loader adds its folder; conda's python.exe has Library/bin.
        folders = {path.rpartition("/")[0] for path in walk.files}
        directories = [folder for folder in ("_internal", "Library/bin") if folder in folders] + directories
    return _make(root, entries, walk, directories, kind)


def _make(root: Path, entries: tuple[str, ...], walk: Walk, directories: list[str], kind: str) -> Bundle:
    for entry in entries:
        if entry not in walk.files:  # named by the user, whatever its suffix or however full the folder is
            walk.files[entry] = BundleFile(path=entry, kind="pe", size=(root / entry).stat().st_size)
        elif walk.files[entry].kind != "pe":
            walk.files[entry] = BundleFile(path=entry, kind="pe", size=walk.files[entry].size)
    return Bundle(
        root=str(root),
        entries=tuple(sorted(entries)),
        files=tuple(walk.files[path] for path in sorted(walk.files)),
        dll_directories=tuple(dict.fromkeys(directories)),
        kind=kind,
        skipped=tuple(walk.skipped),
    )


def _environment(target: Path) -> Path:
    """The folder of a program; for one in a virtual environment's ``Scripts``, the environment."""
    folder = target.parent
    if folder.name.lower() == "scripts" and (folder.parent / "Lib" / "site-packages").is_dir():
        return folder.parent
    return folder


def _shared(folder: Path) -> bool:
    """True for folders where programs of all kinds lie: what is below them does not belong to one of them."""
    here = _absolute(folder)
    home = Path.home()
    if here in (home, *home.parents, Path(here.anchor), _absolute(Path(tempfile.gettempdir()))):
        return True
    near_home = here.parent == home or here.parent == Path(here.anchor)
    return near_home and here.name.lower() in _SHARED_FOLDERS


def _absolute(path: Path) -> Path:
    return Path(os.path.abspath(path))  # noqa: PTH100 - links stay as the user wrote them


def _relative(target: Path, root: Path) -> str:
    return _absolute(target).relative_to(_absolute(root)).as_posix()
