"""What match/ says: rule + place + reach."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Confidence, Record

Severity = Literal["blocker", "risk", "setup", "note"]
SEVERITIES: tuple[Severity, ...] = ("note", "setup", "risk", "blocker")
Reach = Literal["load", "init", "called", "use", "mention"]
REACHES: tuple[Reach, ...] = ("mention", "use", "called", "init", "load")


class Finding(Record, frozen=True, omit_defaults=False):
    """One rule that matched at one place. Keys as in design section 9."""

    id: str
    severity: Severity
    reach: Reach
    confidence: Confidence
    title: str
    module: str | None
    library: str | None
    functions: tuple[str, ...]
    message: str
    fix: tuple[str, ...]
    evidence: tuple[str, ...]
    """evidence lines, in the vocabulary of ``zcheck check --evidence``"""
    area: str = ""
    limitation: bool = False
    first: bool = False
    """a host cause that fails before the program's own"""
    refs: tuple[str, ...] = ()
    evidence_left: int = 0
    """evidence lines beyond those of ``evidence``; the report's ``evidence`` has them"""
