"""What host/ says about a PC, and the tables that it judges by.

Paths of a PC are Windows paths (``C:\\…``) as the user would type them, also when they were read from a faked root.
"""

from __future__ import annotations

from typing import Literal

from msgspec import field

from zcheck.model.base import Confidence, Problem, Record
from zcheck.model.facts import Machine

HOST_SCHEMA = 1

Level = Literal["PASS", "WARN", "MISS"]
LEVELS: tuple[Level, ...] = ("MISS", "WARN", "PASS")
GfxFound = Literal["hipinfo", "given", "pci-id", "name", "kfd", ""]
"""how the gfx name of an adapter was found"""
Ladder = Literal["verified", "unverified candidate", "experimental", "unsupported", "unknown"]
"""what may be said of a GPU before a run: *verified* only where a recorded run says so"""


class Adapter(Record, frozen=True, omit_defaults=False):
    """One display adapter. ``index`` is HIP's own where hipInfo said so, else the order of the source."""

    index: int
    name: str
    vendor: str = ""
    """AMD, NVIDIA, Intel or empty"""
    gfx: str = ""
    gfx_by: GfxFound = ""
    generation: str = ""
    integrated: bool | None = None
    driver_version: str = ""
    """Windows driver version, ``32.0.…``"""
    software_version: str = ""
    """AMD Software version, ``25.3.1``"""
    software_edition: str = ""
    pnp_id: str = ""
    memory_mib: int | None = None
    hip_sdk: dict[str, str] = field(default_factory=dict)
    """support by HIP SDK version: full, runtime only, not listed, none"""
    zluda: str = ""
    """supported, not supported or unknown, for releases from v5 on"""
    status: Ladder = "unknown"


class DllFact(Record, frozen=True, omit_defaults=False):
    """A DLL of interest: where it is, its file version, size in bytes. ``exports`` counts names; -1: not read."""

    name: str
    path: str
    version: str = ""
    company: str = ""
    machine: Machine | Literal[""] = ""
    size: int = 0
    exports: int = -1


class HipRoot(Record, frozen=True, omit_defaults=False):
    """One HIP SDK folder (the one that holds ``bin``)."""

    path: str
    found_by: str
    """HIP_PATH, Program Files, C:\\ROCm, PATH, --hip-dir, a TheRock folder"""
    kind: Literal["sdk", "therock", "unknown"] = "unknown"
    version: str = ""
    """``6.4``; empty when nothing says"""
    version_by: str = ""
    patch: str = ""
    """the newest patch release it can be, where a component that came with a later one is absent: ``6.4.1``"""
    generation: str = ""
    """major version of the HIP runtime it was made with: 5, 6, 7"""
    dlls: tuple[DllFact, ...] = ()
    components: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    """components that its version should have and that are not there"""
    rocblas_gfx: tuple[str, ...] = ()
    """gfx names that rocBLAS kernel files are there for"""
    hipblaslt_gfx: tuple[str, ...] = ()
    hipinfo: str = ""
    problems: tuple[Problem, ...] = ()


class ImportGap(Record, frozen=True, omit_defaults=False):
    """Functions that a ZLUDA DLL asks of a HIP DLL and that the DLL found does not export.

    ``way``: import (the process does not start), delay (the first call fails), lookup (the whole ZLUDA library fails).
    ``answered_by`` is the path of the DLL found, empty when none was.
    """

    importer: str
    dll: str
    answered_by: str
    functions: tuple[str, ...] = ()
    way: Literal["import", "delay", "lookup"] = "import"


class ZludaFile(Record, frozen=True, omit_defaults=False):
    """One file of a ZLUDA folder. ``maker``: zluda, NVIDIA, other or empty (not read)."""

    name: str
    maker: str = ""
    machine: Machine | Literal[""] = ""
    version: str = ""
    size: int = 0
    sha256: str = ""
    wants: tuple[str, ...] = ()
    """HIP DLLs that it imports"""


class ZludaFolder(Record, frozen=True, omit_defaults=False):
    """One folder with ZLUDA's DLLs."""

    path: str
    found_by: str = ""
    kind: Literal["release", "staged"] = "release"
    """release: with its launcher; staged: DLLs placed beside a program"""
    release: str = ""
    """newest release that fits; empty when it cannot be told"""
    candidates: tuple[str, ...] = ()
    """all releases that fit equally, oldest first"""
    confidence: Confidence = "low"
    identified_by: str = ""
    files: tuple[ZludaFile, ...] = ()
    missing: tuple[str, ...] = ()
    foreign: tuple[str, ...] = ()
    """files under ZLUDA's names that NVIDIA made"""
    wrong_machine: tuple[str, ...] = ()
    beside: tuple[str, ...] = ()
    """HIP DLLs in the folder itself, which ZLUDA finds before those of HIP_PATH"""
    gaps: tuple[ImportGap, ...] = ()
    runtime: str = ""
    """path of the amdhip64*.dll that answers to this ZLUDA"""
    runtime_by: str = ""
    problems: tuple[Problem, ...] = ()


class HostCheck(Record, frozen=True, omit_defaults=False):
    """One line of the list. ``key`` is from the closed list of ``zcheck.host.keys``; ``fix`` is empty for PASS."""

    key: str
    level: Level
    text: str
    value: str = ""
    subject: str = ""
    fix: tuple[str, ...] = ()
    cure: Literal["", "setup", "replace"] = ""
    """setup: placing files, a variable or a device cures it; replace: a driver, SDK or GPU must be replaced"""
    sources: tuple[str, ...] = ()
    confidence: Confidence = "high"


class Host(Record, frozen=True, omit_defaults=False):
    """Everything read about one PC. Holds no user name, token or file content other than the paths found."""

    schema: int = HOST_SCHEMA
    source: str = ""
    """windows, root, linux, gpu-report"""
    os: str = ""
    os_build: str = ""
    env: dict[str, str] = field(default_factory=dict)
    """variables that matter (HIP_PATH, HIP_VISIBLE_DEVICES, ZLUDA_CC …), never the whole environment"""
    path: tuple[str, ...] = ()
    adapters: tuple[Adapter, ...] = ()
    system: tuple[DllFact, ...] = ()
    """HIP and CUDA DLLs in System32"""
    hip: tuple[HipRoot, ...] = ()
    zluda: tuple[ZludaFolder, ...] = ()
    checks: tuple[HostCheck, ...] = ()
    problems: tuple[Problem, ...] = ()


# --- tables --------------------------------------------------------------------------------------------------------


class Release(Record, frozen=True):
    """A ZLUDA release; ``order`` counts upwards in time, a fork's is 1000 and more."""

    tag: str
    order: int
    commit: str = ""


class Layout(Record, frozen=True):
    """What a run of releases ships and looks for; ``since`` and ``until`` are release orders, inclusive."""

    since: int
    until: int
    launcher: str
    injected: tuple[str, ...]
    files: tuple[str, ...]
    hip_runtime: str
    hip_path_read: bool
    hipblaslt_names: tuple[str, ...]
    cublas_needs_hipblaslt: bool


class ReleaseLibrary(Record, frozen=True):
    """One library of a main release or a fork: its file and the HIP DLLs it needs, alternatives in an inner tuple."""

    release: str
    library: str
    file: str
    hip_dlls: tuple[tuple[str, ...], ...] = ()


class Component(Record, frozen=True):
    """A component of one HIP SDK version; ``included`` is yes, no, unclear or unknown."""

    version: str
    name: str
    included: str
    dlls: tuple[str, ...] = ()
    note: str = ""
    confidence: str = ""


class GpuRow(Record, frozen=True):
    """AMD's word on one GPU and one HIP SDK for Windows."""

    name: str
    gfx: str
    generation: str
    apu: bool
    hip_sdk: str
    sdk_support: str


class GfxRow(Record, frozen=True):
    """What is known of a gfx target; ``zluda_v5_on`` is yes, no or empty."""

    gfx: str
    generation: str
    apu: bool
    zluda_v5_on: str = ""
    rocblas: str = ""
    hipblaslt: str = ""
    community_rocblas: str = ""
    source: str = ""


class PciGpu(Record, frozen=True):
    """A PCI device id of vendor 1002, lower case hexadecimal."""

    device_id: str
    name: str
    gfx: str
    generation: str
    apu: bool
    source: str = ""


class KnownBad(Record, frozen=True):
    """Something that people report as broken. ``kind``: os-build, driver, driver-edition, hip-sdk."""

    kind: str
    value: str
    name: str
    generation: str
    zluda: str
    effect: str
    fix: str
    source: str
    confidence: Confidence = "medium"


class HipSymbol(Record, frozen=True):
    """A name that a ZLUDA library looks up in a HIP DLL at its first use; ``since``, ``until`` are release orders."""

    library: str
    dlls: tuple[str, ...]
    symbol: str
    since: int
    until: int


class GpuRun(Record, frozen=True):
    """A recorded run: which GPU, stack and workload, and how it ended."""

    gfx: str
    gpu: str
    hip_sdk: str
    zluda: str
    workload: str
    outcome: str
    date: str = ""


class HostTables(Record, frozen=True):
    """Everything that host/ knows beforehand; cli fills it from the coverage database."""

    releases: tuple[Release, ...] = ()
    layouts: tuple[Layout, ...] = ()
    libraries: tuple[ReleaseLibrary, ...] = ()
    components: tuple[Component, ...] = ()
    gpus: tuple[GpuRow, ...] = ()
    gfx: tuple[GfxRow, ...] = ()
    pci: tuple[PciGpu, ...] = ()
    known_bad: tuple[KnownBad, ...] = ()
    hip_symbols: tuple[HipSymbol, ...] = ()
    runs: tuple[GpuRun, ...] = ()


class ExportRange(Record, frozen=True):
    """A name that a ZLUDA library exports from release order ``since`` to ``until``, both inclusive."""

    library: str
    name: str
    since: int
    until: int


class ZludaExports(Record, frozen=True):
    """What every release that was read exports."""

    ranges: tuple[ExportRange, ...] = ()
