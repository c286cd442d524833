"""The one report object that every format is rendered from; keys as in design section 9."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Confidence, Record, Skipped
from zcheck.model.finding import Finding
from zcheck.model.graph import EdgeKind
from zcheck.model.stack import LaunchMode, Provision, State

SCHEMA = 1
Verdict = Literal["verified", "likely", "needs-setup", "at-risk", "blocked", "unknown", "no-cuda"]
# Most severe first (design section 3); verified stands for a recorded run and replaces at-risk and likely.
VERDICTS: tuple[Verdict, ...] = ("blocked", "unknown", "at-risk", "needs-setup", "likely", "verified", "no-cuda")
Need = Literal["required", "optional", "not seen", "unknown"]
WORKLOADS: tuple[str, ...] = (
    "convolution", "gemm", "attention", "fft", "sparse", "solver", "random", "rnn", "ray tracing", "video",
)  # fmt: skip


class Base(Record, frozen=True, omit_defaults=False):
    """Report parts always carry all their keys."""


class WorkloadReason(Base, frozen=True):
    """Why a workload family is said to be needed: counts and the model, script, operator or function that says so."""

    family: str
    need: Need
    reasons: tuple[str, ...] = ()


class StackReport(Base, frozen=True):
    """Verdict for one stack."""

    id: str
    zluda: str
    launch_mode: LaunchMode
    hip_sdk: str
    gpu: str | None
    verdict: Verdict
    headline: str
    """one sentence behind the verdict, never more than "predicted loadable" """
    workload: dict[str, str]
    workload_reasons: tuple[WorkloadReason, ...]
    actions: tuple[str, ...]
    findings: tuple[Finding, ...]
    ignored: tuple[Finding, ...] = ()
    """findings that zcheck.toml ignores, with the reason in ``message``"""


class ModuleReport(Base, frozen=True):
    """One module; ``role`` by stack id."""

    name: str
    path: str | None
    machine: str
    size: int
    version: str
    company: str
    role: dict[str, Provision]
    kind: str = "module"
    """entry, module, framework, vendor, system"""
    load: str = "start"
    sha256: str | None = None


class EdgeReport(Base, frozen=True, rename={"source": "from", "target": "to"}):
    """One edge; ``from`` and ``to`` are module names (paths where names repeat)."""

    source: str
    target: str
    kind: EdgeKind
    functions: tuple[str, ...]
    resolved_by: str
    confidence: Confidence
    place: str = ""


class FunctionReport(Base, frozen=True, rename={"users": "from"}):
    """One CUDA function in use; ``state`` by stack id."""

    library: str
    name: str
    kind: str
    users: tuple[str, ...]
    state: dict[str, State]
    limit: dict[str, str] = {}
    families: tuple[str, ...] = ()


class DeviceEntry(Base, frozen=True):
    """One entry of a fatbin container, or one loose file."""

    kind: str
    arch: str
    version: str
    compression: str
    kernels: int
    size: int = 0
    container: int = 0
    problem: str | None = None


class ReplayReport(Base, frozen=True):
    """What one release does with one module's containers; counts of kernels."""

    chosen: int | None
    kernels: int
    loadable: int
    dropped: int
    stub: int
    load_fails: str | None
    empty: int = 0
    """kernels that exist as SASS only, so that the load succeeds and the look-up fails"""
    lost: int = 0
    """kernels lost because their whole module fails to load"""
    reasons: tuple[str, ...] = ()


class DeviceCodeReport(Base, frozen=True):
    """Device code of one module, section by section; ``replay`` by release."""

    module: str
    section: str
    entries: tuple[DeviceEntry, ...]
    replay: dict[str, ReplayReport]
    containers: int = 0
    notes: tuple[str, ...] = ()


class Report(Base, frozen=True):
    """The report on one application."""

    schema: int
    zcheck: str
    database: str
    target: str
    entries: tuple[str, ...]
    stacks: tuple[StackReport, ...]
    modules: tuple[ModuleReport, ...]
    edges: tuple[EdgeReport, ...]
    functions: tuple[FunctionReport, ...]
    device_code: tuple[DeviceCodeReport, ...]
    host: dict[str, object] | None
    skipped: tuple[Skipped, ...]
    frameworks: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    """what the verdict takes for granted: no host given, default stack, …"""
    evidence: tuple[str, ...] = ()


class Applications(Base, frozen=True):
    """A folder with several entry programs: one report per entry."""

    schema: int
    zcheck: str
    database: str
    target: str
    applications: tuple[Report, ...]
    skipped: tuple[Skipped, ...] = ()
