"""What a run would do, decided from facts alone: strategy and why, command, environment, files, refusals."""

from __future__ import annotations

import ntpath
import posixpath
from collections.abc import Mapping

import msgspec

from zcheck.launch import environment, preflight, quoting
from zcheck.launch.demand import Demand
from zcheck.launch.staging import stage_files
from zcheck.model.base import Record
from zcheck.model.launch import (
    EnvironmentChange,
    Folder,
    HipInstallation,
    Plan,
    Program,
    Refusal,
    ReleaseFile,
    ReleaseFiles,
    StageFile,
    Strategy,
)
from zcheck.model.report import Verdict


class Request(Record, frozen=True):
    """What the user asked for; ``None`` leaves the choice to the plan."""

    arguments: tuple[str, ...] = ()
    cwd: str = ""
    strategy: Strategy | None = None
    anyway: bool = False
    allow_inject: bool = False
    gpu_index: int | None = None
    zluda_cc: str | None = None
    trace: bool = False
    switches: tuple[EnvironmentChange, ...] = ()
    """per-framework variables of the coverage database, each with a word on why"""


class System(Record, frozen=True):
    """The system that the run happens on. ``wine``: the Wine program that starts PE files, off Windows."""

    windows: bool
    wine: str = ""
    variables: dict[str, str] = msgspec.field(default_factory=dict)
    """the environment that the child would inherit"""


class Situation(Record, frozen=True):
    """All facts that a plan follows from. ``places``: folders that staging may write to, by path."""

    program: Program
    release: ReleaseFiles
    zluda: Folder
    hip: HipInstallation
    system: System
    stack: str = ""
    verdict: Verdict | None = None
    headline: str = ""
    demand: Demand = Demand()
    places: tuple[Folder, ...] = ()
    zluda_short: str = ""
    """on Windows the short name of a ZLUDA folder with other than ASCII characters"""


def windows_name(path: str) -> str:
    r"""A POSIX path as Wine shows it to Windows programs: ``Z:\…``."""
    return "Z:" + path.replace("/", "\\") if path.startswith("/") else path


def make_plan(situation: Situation, request: Request) -> Plan:
    """The plan; nothing is touched. A plan with refusals must not be applied."""
    program, release, hip, system = situation.program, situation.release, situation.hip, situation.system
    refusals = list(preflight.check_program(program, release, windows=system.windows))
    warnings: list[str] = []
    state, trouble = preflight.check_zluda(_needed(release, request, program, situation.zluda), situation.zluda)
    refusals += trouble
    if program.kind == "pe":
        loaded = {item.dll for item in situation.demand.wanted}
        no, unsure = preflight.check_hip(release, hip, loaded, situation.zluda)
        refusals += no
        warnings += unsure
        if not system.windows and not system.wine:
            refusals.append(Refusal("no-wine", f"{program.name} is a Windows program; install Wine to run it here"))
    if situation.verdict == "blocked":
        why_not = situation.headline or "zcheck's verdict is blocked"
        refusals.append(Refusal("blocked", f"{why_not}; --anyway runs it all the same", anyway=True))
    strategy, why, no = _strategy(situation, request, usable=not trouble)
    refusals += no
    if strategy == "zluda-exe" and not situation.zluda.path.isascii() and not situation.zluda_short:
        refusals.append(
            Refusal(
                "zluda-folder-name",
                f"{situation.zluda.path}: zluda.exe cannot load its DLLs from a folder with other than ASCII "
                "characters in its name; move the folder",
            )
        )
    stage: tuple[StageFile, ...] = ()
    if strategy == "stage":
        stage, no = stage_files(release, situation.zluda, situation.demand, situation.places)
        refusals += no
    if request.anyway:
        warnings += [f"--anyway: {refusal.reason}" for refusal in refusals if refusal.anyway]
        refusals = [refusal for refusal in refusals if not refusal.anyway]
    changes, said = _environment(situation, request, strategy)
    warnings += said
    command, no = _command(situation, request, strategy)
    refusals += no
    preload = ("nvcuda.dll",) if strategy == "preload" else ()
    return Plan(
        program=program.path,
        program_sha256=program.sha256,
        stack=situation.stack,
        release=release.release,
        strategy=strategy,
        why=tuple(why),
        command=command,
        cwd=request.cwd or _parent(program.path, system),
        environment=changes,
        stage=stage,
        preload=tuple(_join(situation.zluda.path, name, system) for name in preload),
        warnings=tuple(dict.fromkeys(warnings)),
        refusals=tuple(dict.fromkeys(refusals)),
        release_hashes=state,
        gpu=hip.gpu,
        hip_sdk=hip.version,
        hip_root=hip.root,
        zluda_dir=situation.zluda.path,
    )


def _parent(path: str, system: System) -> str:
    return ntpath.dirname(path) if system.windows else posixpath.dirname(path)


def _join(folder: str, name: str, system: System) -> str:
    return ntpath.join(folder, name) if system.windows else posixpath.join(folder, name)


def _needed(release: ReleaseFiles, request: Request, program: Program, zluda: Folder) -> ReleaseFiles:
    """The release with only those files that this strategy cannot do without."""
    if request.strategy in (None, "zluda-exe") and program.kind == "pe":
        traced = tuple(ReleaseFile(f"trace/{name}") for name in release.injected) if request.trace else ()
        return msgspec.structs.replace(release, files=(*release.files, *traced))
    if program.kind == "native":
        # A build for Linux: the loader takes libcuda.so.1, the packages carry it under either name
        known = {file.name: file for file in release.files}
        name = "libcuda.so.1" if zluda.get("libcuda.so.1") else "libcuda.so"
        return msgspec.structs.replace(release, files=(known.get(name, ReleaseFile(name)),))
    return msgspec.structs.replace(release, files=tuple(f for f in release.files if f.name.lower() == "nvcuda.dll"))


def _strategy(
    situation: Situation, request: Request, *, usable: bool
) -> tuple[Strategy | None, list[str], list[Refusal]]:
    program, release, demand = situation.program, situation.release, situation.demand
    if program.kind == "native":
        if request.strategy not in (None, "path"):
            reason = (
                f"{request.strategy} is for Windows programs; {program.name} is served through LD_LIBRARY_PATH (path)"
            )
            return None, [], [Refusal("strategy", reason)]
        return (
            "path",
            ["a program of this system: ZLUDA's libraries come first in LD_LIBRARY_PATH; nothing is written"],
            [],
        )
    wanted = request.strategy
    conflicts = demand.conflicts(release.injected)
    if request.trace and wanted not in (None, "zluda-exe"):
        return None, [], [Refusal("strategy", "--trace needs the release's own launcher (strategy zluda-exe)")]
    if wanted == "zluda-exe" or (wanted is None and release.launcher and usable):
        if not release.launcher:
            return None, [], [Refusal("strategy", f"ZLUDA {release.release} has no launcher")]
        why = [f"{release.launcher} of ZLUDA {release.release} puts its DLLs into the process and its children"]
        if demand.cudart:
            why.append(
                f"{demand.cudart}: NVIDIA's runtime looks for nvcuda.dll in System32 only, so nothing else serves it"
            )
        return "zluda-exe", why, []
    if wanted is None and not usable:
        return None, [], []  # the ZLUDA folder is at fault, and said so
    if demand.cudart and wanted in ("path", "stage"):
        reason = (
            f"{wanted}: {demand.cudart}, and NVIDIA's runtime looks for nvcuda.dll in System32 only, never beside the "
            "program or on PATH; use zluda-exe"
        )
        return None, [], [Refusal("cudart", reason)]
    if wanted == "path" or (wanted is None and demand.direct and not conflicts and not demand.cudart):
        if conflicts:
            own = ", ".join(conflicts)
            reason = f"path: the program ships its own {own}, which Windows finds first; use zluda-exe or stage"
            return None, [], [Refusal("conflict", reason)]
        return "path", ["nvcuda.dll is loaded by its bare name and nothing lies in its way; nothing is written"], []
    if wanted == "stage" or (wanted is None and not demand.cudart and not request.allow_inject):
        return "stage", ["ZLUDA's DLLs are placed where the program loads them, and taken back afterwards"], []
    if not request.allow_inject:
        return None, [], [Refusal("inject", "preload starts a thread in another process; allow it with --allow-inject")]
    if not situation.system.windows:
        return None, [], [Refusal("strategy", "preload works on Windows only")]
    return "preload", ["nvcuda.dll is loaded into the suspended process before its own code runs; children are not"], []


def _command(
    situation: Situation, request: Request, strategy: Strategy | None
) -> tuple[tuple[str, ...], list[Refusal]]:
    program, release, system = situation.program, situation.release, situation.system
    wine = (system.wine,) if program.kind == "pe" and not system.windows and system.wine else ()
    shown = windows_name(program.path) if wine else program.path
    if strategy != "zluda-exe":
        return (*wine, shown, *request.arguments), []
    tokens = quoting.for_launcher(shown, request.arguments, release.quoting)
    if tokens is None:
        reason = (
            f"how ZLUDA {release.release}'s {release.launcher} hands on arguments with spaces or quotes is not known; "
            "use --strategy stage, or arguments without them"
        )
        return (), [Refusal("quoting", reason)]
    launcher = _join(situation.zluda_short or situation.zluda.path, release.launcher, system)
    trace = ("--zluda-trace",) if request.trace else ()
    return (*wine, windows_name(launcher) if wine else launcher, *trace, "--", *tokens), []


def _environment(
    situation: Situation, request: Request, strategy: Strategy | None
) -> tuple[tuple[EnvironmentChange, ...], list[str]]:
    program, release, hip, system = situation.program, situation.release, situation.hip, situation.system
    variables: Mapping[str, str] = system.variables
    warnings: list[str] = []
    changes: list[EnvironmentChange] = []

    def put(name: str, value: str, why: str) -> None:
        changes.append(EnvironmentChange(name, value, why))

    if program.kind == "native":
        old = variables.get("LD_LIBRARY_PATH", "")
        put(
            "LD_LIBRARY_PATH",
            environment.prepend([situation.zluda.path], old, ":", ignore_case=False),
            "ZLUDA's libraries",
        )
    else:
        show = windows_name if not system.windows else str
        folders = [show(situation.zluda_short or situation.zluda.path)] if situation.zluda.path else []
        if hip.root:
            folders.append(show(_join(hip.root, "bin", system)))
            put("HIP_PATH", show(hip.root), "ZLUDA looks for HIP's DLLs in its bin")
        name = "PATH" if system.windows else "WINEPATH"  # Wine puts WINEPATH before Windows' own PATH
        old = environment.lookup(variables, name, ignore_case=system.windows)
        if folders:
            put(name, environment.prepend(folders, old, ";", ignore_case=True), "ZLUDA's and HIP's DLLs")
        if hip.rocblas_library:
            put("ROCBLAS_TENSILE_LIBPATH", show(hip.rocblas_library), "rocBLAS' kernel files of this SDK")
        if hip.hipblaslt_library:
            put("HIPBLASLT_TENSILE_LIBPATH", show(hip.hipblaslt_library), "hipBLASLt's kernel files of this SDK")
    index = request.gpu_index
    if index is not None:
        put("HIP_VISIBLE_DEVICES", str(index), "--gpu-index")
    if request.zluda_cc is not None:
        if release.zluda_cc:
            put("ZLUDA_CC", request.zluda_cc, "--zluda-cc")
        else:
            warnings.append(f"ZLUDA {release.release} does not read ZLUDA_CC; --zluda-cc has no effect")
    changes += request.switches
    if strategy == "preload":
        warnings.append("preload: antivirus programs dislike it, and child processes are not served")
    return tuple(changes), warnings
