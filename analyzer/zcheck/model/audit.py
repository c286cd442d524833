"""Many applications: what discover/ finds below a folder, and the one object that every audit format is made from."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Record, Skipped
from zcheck.model.bundle import BundleFile
from zcheck.model.finding import Reach, Severity
from zcheck.model.report import Base, Verdict
from zcheck.model.stack import LaunchMode

ApplicationKind = Literal["program", "frozen", "python-environment", "plugins"]


class Application(Record, frozen=True):
    """An application below a folder. ``path`` is relative to that folder (empty for the folder itself), ``entries`` and
    ``files`` are relative to the application; ``size`` is that of its files in bytes."""

    path: str
    kind: ApplicationKind
    entries: tuple[str, ...]
    files: tuple[BundleFile, ...] = ()
    size: int = 0


class AuditStack(Base, frozen=True):
    """A column: one stack."""

    id: str
    zluda: str
    launch_mode: LaunchMode
    hip_sdk: str
    gpu: str | None


class AuditFinding(Base, frozen=True):
    """A rule that matched in an application. ``severity`` by stack id, where it matched."""

    id: str
    title: str
    reach: Reach
    severity: dict[str, Severity]
    ignored: bool = False


class AuditRow(Base, frozen=True):
    """One application, or the programs of one that are judged alike.

    ``path`` of the first program and ``application`` (its folder) are relative to the audited folder; ``programs`` are
    judged alike, ``others`` are programs of the application without CUDA. Dictionaries are keyed by stack id.
    """

    path: str
    application: str
    kind: ApplicationKind
    programs: tuple[str, ...]
    verdict: dict[str, Verdict]
    workload: dict[str, str]
    """need by family, of the first stack"""
    top_cause: str
    """title of the finding that decides, on the first stack; the reason where the application could not be read"""
    cause_id: str
    causes: dict[str, str]
    """id of the finding that decides, by stack"""
    first_action: str
    blockers: dict[str, int]
    risks: dict[str, int]
    cuda: str
    frameworks: tuple[str, ...]
    size: int
    files: int
    others: tuple[str, ...] = ()
    findings: tuple[AuditFinding, ...] = ()
    problem: str = ""
    """why it could not be read; empty when it was"""
    page: str = ""
    """its own HTML page, relative to the index"""
    vendor: bool = False
    """a CUDA library of NVIDIA's, no application of its own"""


class CauseGroup(Base, frozen=True):
    """Applications that wait for the same thing on one stack. ``action``: the same for all of them, or none."""

    stack: str
    id: str
    title: str
    action: str
    verdict: Verdict
    applications: tuple[str, ...]


class ReleaseCount(Base, frozen=True):
    """How many applications a stack serves. ``served``: verified, likely or needs-setup; ``counts`` by verdict;
    ``vendor``: rows of NVIDIA's own libraries, in neither."""

    stack: str
    served: int
    counts: dict[str, int]
    vendor: int = 0


class RowChange(Base, frozen=True):
    """A program whose verdict on a stack is not what it was; empty where it was or is not there."""

    path: str
    stack: str
    before: str
    after: str
    kind: Literal["better", "worse", "other", "new", "gone"]


class Audit(Base, frozen=True):
    """All applications below a folder; keys as in design section 9."""

    schema: int
    zcheck: str
    database: str
    target: str
    stacks: tuple[AuditStack, ...]
    applications: tuple[AuditRow, ...]
    causes: tuple[CauseGroup, ...]
    releases: tuple[ReleaseCount, ...]
    """best first"""
    skipped: tuple[Skipped, ...]
    complete: bool = True
    """false when it was stopped before the end"""
    filters: tuple[str, ...] = ()
    """rows left out on purpose: ``only blocked``"""
    assumptions: tuple[str, ...] = ()
    changes: tuple[RowChange, ...] | None = None
    """against the audit given with --since"""
