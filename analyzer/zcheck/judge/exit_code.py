"""How a check ends (design section 6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from zcheck.errors import EXIT_FINDINGS, EXIT_OK, EXIT_UNJUDGED
from zcheck.model.report import StackReport, Verdict

FailOn = Literal["blocker", "risk", "setup", "note", "never"]
FAIL_ON: tuple[FailOn, ...] = ("blocker", "risk", "setup", "note", "never")
_VERDICTS: dict[FailOn, tuple[Verdict, ...]] = {
    "blocker": ("blocked",),
    "risk": ("blocked", "at-risk"),
    "setup": ("blocked", "at-risk", "needs-setup"),
    "note": ("blocked", "at-risk", "needs-setup"),
    "never": (),
}


def exit_code(stacks: Iterable[StackReport], fail_on: FailOn) -> int:
    """1 when a stack is at or above ``fail_on``, else 3 when one could not be judged, else 0."""
    reports = list(stacks)
    failing = _VERDICTS[fail_on]
    if any(report.verdict in failing or (fail_on == "note" and report.findings) for report in reports):
        return EXIT_FINDINGS
    if fail_on in ("risk", "setup", "note") and any(
        finding.severity == "risk" and finding.reach != "mention" for report in reports for finding in report.findings
    ):
        return EXIT_FINDINGS
    if any(report.verdict == "unknown" for report in reports):
        return EXIT_UNJUDGED
    return EXIT_OK
