"""A rule and its examples, as read from one YAML file."""

from __future__ import annotations

from zcheck.match.condition import Condition
from zcheck.model.base import Confidence, Record
from zcheck.model.evidence import Evidence
from zcheck.model.finding import Severity
from zcheck.model.stack import Stack


class Example(Record, frozen=True):
    """One case of a rule: evidence and stack given, and whether the rule must match."""

    name: str
    evidence: Evidence
    stack: Stack
    expect_match: bool


class Rule(Record, frozen=True):
    """One rule. The first predicate of ``all`` is the anchor: each module, library and reach of it makes a finding."""

    id: str
    title: str
    area: str
    severity: Severity
    when: Condition
    explain: str
    fix: tuple[str, ...]
    refs: tuple[str, ...] = ()
    examples: tuple[Example, ...] = ()
    confidence: Confidence = "high"
    limitation: bool = False
    first: bool = False
    path: str = ""
