"""What launch/ decides and keeps: what is known of a ZLUDA release's files, the plan, the journal, the run report."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Record
from zcheck.model.facts import Machine

RUN_SCHEMA = 1
JOURNAL_SCHEMA = 1

Strategy = Literal["zluda-exe", "path", "stage", "preload"]
"""zluda-exe: the release's own launcher injects its DLLs; path: its folder first in the child's DLL search, no writes;
stage: journaled copies where the program loads them; preload: its nvcuda.dll loaded into the suspended process"""
STRATEGIES: tuple[Strategy, ...] = ("zluda-exe", "path", "stage", "preload")

Quoting = Literal["raw", "quoted", "unknown"]
"""How a release's launcher hands on the program's arguments: joined with bare spaces, quoted right, or not known"""

ProgramKind = Literal["pe", "native"]
Origin = Literal["zluda", "app", "system", "hip", "other"]
Stream = Literal["stdout", "stderr", "launcher"]

Grade = Literal["not-started", "detected", "loadable", "safe-refusal", "functional"]
"""Steps of the evidence ladder that one run can show; integration validated needs a person who checked the results"""


Outcome = Literal["passed", "failed", "inconclusive"]
"""inconclusive: interrupted, or ended well without ZLUDA having been seen in the process"""


class ReleaseFile(Record, frozen=True):
    """A file that belongs into the ZLUDA folder; ``sha256`` where the release's own hash is known."""

    name: str
    sha256: str | None = None


class HipNeed(Record, frozen=True):
    """What one ZLUDA library needs from the HIP SDK, each DLL with its alternative names."""

    library: str
    dll_names: tuple[str, ...]
    hip: tuple[tuple[str, ...], ...]


class ReleaseFiles(Record, frozen=True):
    """What one ZLUDA release is made of, as far as launching goes (tables ``launcher`` and ``layouts``).

    ``injected``: DLL names that its launcher puts into the process; ``machine``: of the programs it can enter.
    ``hip_runtimes``: runtime DLLs it can work with, best first; ``hip_path_read``: it looks in ``HIP_PATH\\bin``.
    """

    release: str
    launcher: str = "zluda.exe"
    quoting: Quoting = "unknown"
    files: tuple[ReleaseFile, ...] = ()
    injected: tuple[str, ...] = ()
    machine: Machine = "x64"
    hip_runtimes: tuple[str, ...] = ("amdhip64_7.dll", "amdhip64_6.dll")
    hip_needs: tuple[HipNeed, ...] = ()
    hip_path_read: bool = True
    zluda_cc: bool = True
    """it reads ZLUDA_CC"""


class FolderFile(Record, frozen=True):
    """A file found on disk: name as written there, size in bytes."""

    name: str
    size: int
    sha256: str
    machine: Machine | None = None
    link: bool = False
    """a symbolic link or reparse point"""


class FrameworkSwitch(Record, frozen=True):
    """A variable that makes a framework avoid what ZLUDA does badly (``switches.yaml``)."""

    framework: str
    variable: str
    value: str
    why: str
    source: str
    unless_launcher: bool = False


class Folder(Record, frozen=True):
    """What was found in one folder; names are compared without case."""

    path: str
    files: tuple[FolderFile, ...] = ()
    link: bool = False
    writable: bool = True
    free: int = 0
    """free bytes of its volume"""

    def get(self, name: str) -> FolderFile | None:
        """The file of that name, whatever its case."""
        wanted = name.lower()
        return next((file for file in self.files if file.name.lower() == wanted), None)


class Program(Record, frozen=True):
    """The program to start, as its file shows it. ``path`` is absolute, in this system's spelling."""

    path: str
    name: str
    sha256: str
    kind: ProgramKind
    machine: Machine = "other"
    elevated: bool = False
    """its manifest asks for administrator rights"""
    packaged: bool = False
    """it lives under WindowsApps, or is a store package"""
    batch: bool = False
    anti_cheat: tuple[str, ...] = ()
    """signs of anti-cheat or copy protection: ``EasyAntiCheat (EasyAntiCheat_x64.dll)``"""


class HipInstallation(Record, frozen=True):
    """The HIP SDK and GPU to run on, as far as launching needs it; ``files`` are lower-case names in its ``bin``."""

    root: str = ""
    version: str = ""
    files: tuple[str, ...] = ()
    driver_files: tuple[str, ...] = ()
    """lower-case names of AMD's runtime DLLs in System32"""
    rocblas_library: str = ""
    """folder of rocBLAS' Tensile files, empty when there is none"""
    hipblaslt_library: str = ""
    tensile: tuple[str, ...] = ()
    """GPU targets (gfx…) that the rocBLAS folder has files for"""
    gpu: str = ""
    """gfx target of the chosen GPU"""
    gpu_name: str = ""
    driver: str = ""
    gpu_index: int | None = None
    detection: str = ""


class EnvironmentChange(Record, frozen=True):
    """One variable for the child only, and why."""

    name: str
    value: str
    why: str


class StageFile(Record, frozen=True):
    """One file to place: absolute paths, SHA-256 of the source, and of what is in place (``None``: nothing)."""

    source: str
    target: str
    sha256: str
    size: int
    original: str | None = None


class Refusal(Record, frozen=True):
    """Why there will be no run: a stable key, and a sentence. ``anyway``: ``--anyway`` lifts it."""

    key: str
    reason: str
    anyway: bool = False


class Plan(Record, frozen=True, omit_defaults=False):
    """Everything that a run would do; nothing has been done.

    ``command`` is what is started: program and arguments, before the system's own quoting; ``writes`` says in words
    what changes on disk. A plan with ``refusals`` is never applied.
    """

    program: str
    program_sha256: str
    stack: str
    release: str
    strategy: Strategy | None
    why: tuple[str, ...]
    command: tuple[str, ...]
    cwd: str
    environment: tuple[EnvironmentChange, ...]
    stage: tuple[StageFile, ...] = ()
    preload: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    release_hashes: str = "unknown"
    """of the ZLUDA folder: verified, unknown (no published hashes to compare with), incomplete, wrong"""
    gpu: str = ""
    hip_sdk: str = ""
    hip_root: str = ""
    zluda_dir: str = ""


class JournalFile(Record, frozen=True):
    """One file of a journal; ``scratch`` and ``backup`` lie in the target's folder and bear the run's id."""

    source: str
    target: str
    sha256: str
    scratch: str
    backup: str
    original: str | None = None


class Journal(Record, frozen=True):
    """Written before anything is touched; while it exists, the files it names may be in either state."""

    schema: int
    id: str
    program: str
    created: str
    files: tuple[JournalFile, ...]


RestoreState = Literal["restored", "removed", "untouched", "kept", "pending", "missing"]
"""restored: the original is back; removed: our copy is gone; untouched: it was never replaced; kept: somebody changed
it meanwhile, everything stays; pending: in use, to be done later; missing: neither original nor backup is there"""


class Restored(Record, frozen=True):
    """What recovery did with one file."""

    target: str
    state: RestoreState
    note: str = ""


class Recovery(Record, frozen=True):
    """What recovery did with one journal; ``done`` when the journal is closed."""

    id: str
    program: str
    files: tuple[Restored, ...]
    done: bool
    note: str = ""


class ErrorRule(Record, frozen=True):
    """One row of the first-error table: ``pattern`` is a regular expression tried on single lines.

    ``level``: an error decides when it is the earliest; a hint only when no error was seen.
    """

    id: str
    pattern: str
    meaning: str
    source: str
    level: Literal["error", "hint"] = "error"
    examples: tuple[str, ...] = ()


class FirstError(Record, frozen=True):
    """The first thing that went wrong, with the rule that says so; ``line`` counts from 1 within the stream."""

    rule: str
    text: str
    stream: Stream
    line: int = 0
    meaning: str = ""


class LoadedModule(Record, frozen=True):
    """A module seen in the process tree, and where it came from."""

    name: str
    path: str
    origin: Origin
    sha256: str | None = None


class ExitReport(Record, frozen=True, omit_defaults=False):
    """How it ended. ``code`` is unsigned 32-bit on Windows; ``None`` when nothing was started."""

    code: int | None
    hex: str
    meaning: str
    timed_out: bool
    seconds: float
    interrupted: bool = False


class StreamReport(Record, frozen=True, omit_defaults=False):
    """One output stream: bytes in all, bytes kept in the log file, and the last lines."""

    bytes: int
    kept: int
    file: str
    tail: tuple[str, ...]


class StackRecord(Record, frozen=True, omit_defaults=False):
    """The stack that ran."""

    zluda: str
    release_hashes: str
    files: dict[str, str]
    """SHA-256 by file name, of the ZLUDA files that this run could use"""
    hip_sdk: str
    gpu: str
    gpu_name: str
    driver: str
    gpu_index: int | None
    detection: str


class RunReport(Record, frozen=True, omit_defaults=False):
    """The record of one run (its JSON schema: ``zcheck.launch.json_schema``)."""

    schema: int
    zcheck: str
    id: str
    started: str
    ended: str
    program: str
    program_path: str
    program_sha256: str
    machine: Machine
    arguments: tuple[str, ...] | None
    """``None``: left out, because arguments may carry private things"""
    stack: StackRecord
    strategy: str
    why: tuple[str, ...]
    environment: dict[str, str]
    exit: ExitReport
    first_error: FirstError | None
    modules: tuple[LoadedModule, ...]
    staging: tuple[Restored, ...]
    staging_done: bool
    grade: Grade
    outcome: Outcome
    stdout: StreamReport
    stderr: StreamReport
    predicted: str = ""
    """the verdict before the run"""
    notes: tuple[str, ...] = ()
    redacted: bool = False
