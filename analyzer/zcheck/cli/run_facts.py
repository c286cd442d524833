"""Gathers what a plan follows from: analysis, release, ZLUDA folder, HIP SDK and GPU of this PC."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from zcheck.cli.data import coverage
from zcheck.errors import DataError, InputError, UsageError
from zcheck.model.launch import (
    EnvironmentChange,
    ErrorRule,
    Folder,
    FrameworkSwitch,
    HipInstallation,
    HipNeed,
    Program,
    Quoting,
    ReleaseFile,
    ReleaseFiles,
    Strategy,
)
from zcheck.model.report import Report, StackReport
from zcheck.model.stack import Stack

if TYPE_CHECKING:
    from zcheck.launch import Demand
    from zcheck.model.host import Host

# The first tag whose launcher joins arguments with bare spaces, and the last that was read (launch/quoting.py).
_RAW_SINCE, _RAW_UNTIL = "v6-preview.28", "v7-preview.9"
_MOST_SUMS = 1024 * 1024


class _Signs(msgspec.Struct, forbid_unknown_fields=True):
    product: str
    patterns: list[str]


def _document(name: str) -> str:
    text = coverage().document(name)
    if text is None:
        raise DataError(f"{name} is missing from the coverage database: this installation is incomplete")
    return text


def error_rules() -> tuple[ErrorRule, ...]:
    """The first-error rules of the coverage database."""
    from zcheck.launch import parse_rules

    return parse_rules(_document("first_errors.yaml"))


def anti_cheat_signs() -> dict[str, str]:
    """File name pattern → product."""
    import yaml

    try:
        rows = msgspec.convert(yaml.safe_load(_document("anticheat.yaml")), list[_Signs])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise DataError(f"anticheat.yaml: {error}") from None
    return {pattern: row.product for row in rows for pattern in row.patterns}


def release_files(name: str, sums: Path | None = None) -> ReleaseFiles:
    """What a release is made of; ``sums``: a file of SHA-256 sums as ``sha256sum`` writes it. Raises UsageError."""
    database = coverage()
    release = database.resolve_release(name)
    layout = database.layout(release)
    if layout is None:
        raise UsageError(f"nothing is known of the files of ZLUDA {release.tag}")
    hashes = _sums(sums) if sums else {}
    injected = layout.redirects
    forked = database.launcher(release).get("files_needed", "") if release.order >= 1000 or release.order < 0 else ""
    needed = [layout.launcher, *injected, "zluda_redirect.dll", *_names(forked)]
    capability = {key: item.value for key, item in database.capabilities(release).items()}
    libraries = database.libraries(release)
    runtimes = [names for item in libraries if item.library == "nvcuda" for names in item.hip_dlls]
    hip = next((names for names in runtimes if any(name.startswith("amdhip64") for name in names)), ())
    return ReleaseFiles(
        release=release.tag,
        launcher=layout.launcher,
        quoting=_quoting(release.order, release.repository),
        files=tuple(ReleaseFile(name, hashes.get(name.lower())) for name in dict.fromkeys(needed) if name),
        injected=tuple(injected),
        hip_runtimes=tuple(hip),
        hip_needs=tuple(HipNeed(item.library, item.dll_names, item.hip_dlls) for item in libraries if item.hip_dlls),
        hip_path_read=layout.hip_path_read,
        zluda_cc=capability.get("zluda_cc") == "yes",
    )


def _names(text: str) -> list[str]:
    return [name for part in text.split(";") if (name := part.strip()).lower().endswith(".dll") and " " not in name]


def _quoting(order: int, repository: str) -> Quoting:
    database = coverage()
    first, last = (database.resolve_release(tag).order for tag in (_RAW_SINCE, _RAW_UNTIL))
    if order >= 1000 or order < 0:
        return "quoted" if repository.startswith("lshqqytiger/") else "unknown"  # a fork of v3
    return "quoted" if order < first else "raw" if order <= last else "unknown"


def _sums(path: Path) -> dict[str, str]:
    try:
        if path.stat().st_size > _MOST_SUMS:
            raise InputError(f"{path}: too large for a list of SHA-256 sums")
        lines = path.read_text("utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: cannot be read ({error})") from None
    found = {}
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        digest, _, name = line.strip().partition(" ")
        if len(digest) != 64 or not name.strip():
            raise DataError(f"{path}:{number}: not a line of sha256sum")
        found[name.strip().lstrip("*").replace("\\", "/").removeprefix("./").lower()] = digest.lower()
    return found


def zluda_folder(release: ReleaseFiles, given: Path | None, host: Host | None, *, trace: bool) -> Folder:
    """The ZLUDA folder: as given, else the only one that this PC shows; empty when there is none."""
    from zcheck.launch import survey

    path = given
    if path is None and host is not None:
        from zcheck.host.evidence import used_folder

        found = used_folder(host)
        path = Path(found.path) if found is not None and Path(found.path).is_dir() else None
    if path is None:
        return Folder("")
    if not path.is_dir():
        raise InputError(f"{path}: no such folder")
    names = [file.name for file in release.files] + ["libcuda.so", "libcuda.so.1", "nvcudart_hybrid64.dll"]
    names += [name for names in (need.dll_names for need in release.hip_needs) for name in names]
    names += [name for need in release.hip_needs for names_ in need.hip for name in names_]
    if trace:
        names += [f"trace/{name}" for name in release.injected]
    return survey.zluda_folder(Path(os.path.abspath(path)), names)  # noqa: PTH100


def this_pc(hip_dir: Path | None, zluda_dir: Path | None) -> Host | None:
    """What ``zcheck host`` sees of this PC; None when it cannot be read."""
    from zcheck.cli.host import find_host
    from zcheck.errors import ZcheckError

    if sys.platform != "win32":
        return None  # its answer would be about Linux, not about the Windows that Wine shows
    try:
        return find_host(
            zluda_dir=str(zluda_dir) if zluda_dir else None, hip_dir=str(hip_dir) if hip_dir else None, hipinfo=True
        )
    except ZcheckError:
        return None


def hip_installation(host: Host | None, given: Path | None, gpu: str | None, gpu_index: int | None) -> HipInstallation:
    """The HIP SDK and GPU for this run. ``gpu_index`` is HIP's own; raises UsageError when this PC has no such GPU."""
    from zcheck.launch import survey

    root, version, name, driver, detection, gfx = given, "", "", "", "given" if gpu else "", gpu or ""
    if host is not None:
        from zcheck.host.evidence import used_adapter, used_root

        sdk = used_root(host)
        if root is None and sdk is not None:
            root, version = Path(sdk.path), sdk.version
        adapter = used_adapter(host)
        if gpu_index is not None:
            mine = [item for item in host.adapters if item.vendor == "AMD"]
            adapter = next((item for item in mine if item.index == gpu_index), None)
            if mine and adapter is None:
                known = ", ".join(f"{item.index} {item.name}" for item in mine)
                raise UsageError(f"--gpu-index {gpu_index}: this PC has no such GPU (it has {known})")
        if adapter is not None:
            name, driver = adapter.name, adapter.driver_version
            if not gfx:
                gfx, detection = adapter.gfx, adapter.gfx_by
    elif root is None and sys.platform == "win32" and os.environ.get("HIP_PATH"):
        root = Path(os.environ["HIP_PATH"])
    if root is not None and not root.is_dir():
        raise InputError(f"{root}: no such folder")
    system = Path(os.environ.get("SYSTEMROOT", r"C:\Windows")) / "System32" if sys.platform == "win32" else None
    absolute = Path(os.path.abspath(root)) if root else None  # noqa: PTH100
    found = survey.hip_installation(absolute, system, gpu=gfx, gpu_index=gpu_index)
    return msgspec.structs.replace(
        found, version=found.version or version, gpu_name=name, driver=driver, detection=detection
    )


def analysis_of(program: Path, stack: Stack) -> tuple[Report, Path]:
    """The report on a program for one stack, and the folder that its module paths are relative to."""
    from zcheck.cli.pipeline import analyse, hash_modules, judge_analysis
    from zcheck.cli.progress import Progress

    progress = Progress()
    bundle, analyses = analyse(program, [stack], progress)
    hash_modules(analyses[0])
    progress.done()
    report = judge_analysis(analyses[0], [stack], analyses[0].entry)
    return report, Path(os.path.abspath(bundle.root))  # noqa: PTH100


def stack_report(report: Report) -> StackReport:
    """The one stack of a report."""
    return report.stacks[0]


def switches(
    report: Report | None, release: ReleaseFiles, strategy: Strategy | None, variables: dict[str, str]
) -> tuple[EnvironmentChange, ...]:
    """Variables for the frameworks that the report names, which the user has not set."""
    import yaml

    try:
        rows = msgspec.convert(yaml.safe_load(_document("switches.yaml")), list[FrameworkSwitch])
    except (yaml.YAMLError, msgspec.ValidationError) as error:
        raise DataError(f"switches.yaml: {error}") from None
    found = tuple(report.frameworks) if report else ()
    capability = coverage().capabilities(coverage().resolve_release(release.release))
    launcher_sets = "sets_torch_cudnn_v8_api_disabled" in capability and (
        capability["sets_torch_cudnn_v8_api_disabled"].value == "yes"
    )
    by_launcher = launcher_sets and strategy in (None, "zluda-exe")
    return tuple(
        EnvironmentChange(row.variable, row.value, row.why)
        for row in rows
        if any(name.lower().split()[0] == row.framework for name in found if name.strip())
        and row.variable not in variables
        and not (row.unless_launcher and by_launcher)
    )


def places(release: ReleaseFiles, wanted: Demand) -> tuple[Folder, ...]:
    """The folders that staging may write to, looked at."""
    from zcheck.launch import survey, target_folders

    folders = dict.fromkeys(path for paths in target_folders(release, wanted).values() for path in paths)
    return tuple(survey.folder(Path(path), release.injected) for path in folders)


def files_used(release: ReleaseFiles, zluda: Folder) -> dict[str, str]:
    """Name → SHA-256 of the release's files in a ZLUDA folder."""
    return {file.name: found.sha256 for file in release.files if (found := zluda.get(file.name)) is not None}


def wine_program() -> str:
    """Wine's loader, empty when there is none; ``ZCHECK_WINE`` names another."""
    for name in (os.environ.get("ZCHECK_WINE"), "wine64", "/usr/lib/wine/wine64", "wine"):
        if name and (found := shutil.which(name)):
            return found
    return ""


def survey_program(path: Path) -> Program:
    """The program to run; raises InputError."""
    from zcheck.launch import survey

    return survey.program(path, anti_cheat_signs())
