"""Findings that zcheck.toml ignores: they stay visible, and count no more until their date."""

from __future__ import annotations

import datetime
import fnmatch
from collections.abc import Sequence

import msgspec

from zcheck.model.base import Record
from zcheck.model.finding import Finding


class Ignore(Record, frozen=True):
    """One entry of ``ignore``: a rule id, a module pattern (``*`` for any), why, and the last day it holds."""

    id: str
    reason: str
    module: str = "*"
    until: str = ""
    source: str = "zcheck.toml"

    def holds(self, today: datetime.date) -> bool:
        """True up to and including the last day."""
        return not self.until or datetime.date.fromisoformat(self.until) >= today

    def matches(self, finding: Finding) -> bool:
        """True for a finding of this rule in a module that the pattern fits."""
        if finding.id != self.id:
            return False
        return self.module == "*" or fnmatch.fnmatchcase((finding.module or "").lower(), self.module.lower())


def split(
    findings: Sequence[Finding], ignores: Sequence[Ignore], today: datetime.date
) -> tuple[list[Finding], list[Finding], list[str]]:
    """Findings that count, findings that are ignored (the reason in front of their message), and a sentence for each
    ignore that would fit but has expired."""
    kept: list[Finding] = []
    ignored: list[Finding] = []
    expired: dict[str, None] = {}
    for finding in findings:
        fitting = [ignore for ignore in ignores if ignore.matches(finding)]
        holding = next((ignore for ignore in fitting if ignore.holds(today)), None)
        if holding is not None:
            until = f" until {holding.until}" if holding.until else ""
            note = f"Ignored by {holding.source}{until}: {holding.reason}. {finding.message}"
            ignored.append(msgspec.structs.replace(finding, message=note))
            continue
        kept.append(finding)
        for ignore in fitting:
            expired[
                f"{ignore.source} ignored {ignore.id} ({ignore.reason}) until {ignore.until}; that day is over, "
                "so it counts again."
            ] = None
    return kept, ignored, list(expired)


def unused(ignores: Sequence[Ignore], seen: Sequence[Finding]) -> list[Ignore]:
    """Ignores that fit no finding."""
    return [ignore for ignore in ignores if not any(ignore.matches(finding) for finding in seen)]
