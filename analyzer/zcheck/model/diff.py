"""What differs between two reports: two versions of an application, or one application on two stacks."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from zcheck.errors import UsageError
from zcheck.model.finding import REACHES, SEVERITIES, Finding
from zcheck.model.report import SCHEMA, Applications, Base, Report, StackReport

Change = Literal["better", "worse", "changed", "same"]
CHANGES: tuple[Change, ...] = ("worse", "better", "changed", "same")
# From best to worst. no-cuda stands aside: a program that came to use CUDA, or no longer does, is neither.
_VERDICT_RANK = {"verified": 0, "likely": 1, "needs-setup": 2, "at-risk": 3, "unknown": 4, "blocked": 5}
_STATE_RANK = {
    "implemented": 0,
    "partial": 1,
    "no-op": 2,
    "unknown": 3,
    "returns-error": 4,
    "ends-process": 5,
    "not-exported": 6,
    "library-missing": 6,
}
ENTRY = "(program)"
"""stands for the program itself where its file name may differ between versions"""


class Delta(Base, frozen=True):
    """One thing compared; ``before`` and ``after`` are None where it is not in that report."""

    kind: Literal["verdict", "finding", "function"]
    subject: str
    module: str | None
    before: str | None
    after: str | None
    change: Change
    detail: str = ""


class StackDiff(Base, frozen=True):
    """Stack ``a`` of the first report against stack ``b`` of the second; deltas sorted, worse ones first."""

    a: str
    b: str
    verdict: Delta
    findings: tuple[Delta, ...]
    functions: tuple[Delta, ...]

    def deltas(self) -> tuple[Delta, ...]:
        """Verdict, findings, functions."""
        return (self.verdict, *self.findings, *self.functions)


class ApplicationDiff(Base, frozen=True):
    """One application in both reports; stacks that only one of them has are named."""

    a: str
    b: str
    stacks: tuple[StackDiff, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


class Side(Base, frozen=True):
    """Where one side comes from."""

    target: str
    zcheck: str
    database: str


class Diff(Base, frozen=True):
    """All that was compared; applications that only one side has are named."""

    schema: int
    a: Side
    b: Side
    worse: int
    better: int
    changed: int
    applications: tuple[ApplicationDiff, ...]
    only_a: tuple[str, ...] = ()
    only_b: tuple[str, ...] = ()


def compare(first: Report | Applications, second: Report | Applications, stacks: tuple[str, str] | None = None) -> Diff:
    """The difference from ``first`` to ``second``.

    Stacks are paired by id; where both reports have a single stack, these are paired whatever their ids. ``stacks``
    names the one of the first and the one of the second report instead. Applications are paired by name; two single
    reports always. Raises UsageError when nothing can be paired.
    """
    pairs, only_a, only_b = _pairs(first, second)
    applications = tuple(_application(a, b, stacks) for a, b in pairs)
    if not any(application.stacks for application in applications):
        raise UsageError("the reports have no stack in common; name one of each with --stacks")
    tally = [delta.change for app in applications for stack in app.stacks for delta in stack.deltas()]
    return Diff(
        SCHEMA, _side(first), _side(second), tally.count("worse"), tally.count("better"), tally.count("changed"),
        applications, only_a, only_b,
    )  # fmt: skip


def _side(product: Report | Applications) -> Side:
    return Side(product.target, product.zcheck, product.database)


def _pairs(
    first: Report | Applications, second: Report | Applications
) -> tuple[list[tuple[Report, Report]], tuple[str, ...], tuple[str, ...]]:
    if isinstance(first, Report) and isinstance(second, Report):
        return [(first, second)], (), ()
    left = {report.target: report for report in (first.applications if isinstance(first, Applications) else (first,))}
    right = {
        report.target: report for report in (second.applications if isinstance(second, Applications) else (second,))
    }
    common = [name for name in left if name in right]
    if not common:
        raise UsageError("the reports have no application in common")
    return (
        [(left[name], right[name]) for name in common],
        tuple(name for name in left if name not in right),
        tuple(name for name in right if name not in left),
    )


def _application(a: Report, b: Report, wanted: tuple[str, str] | None) -> ApplicationDiff:
    left, right = {s.id: s for s in a.stacks}, {s.id: s for s in b.stacks}
    if wanted:
        for name, have, report in ((wanted[0], left, a), (wanted[1], right, b)):
            if name not in have:
                raise UsageError(f"{report.target} has no stack {name!r}; it has {', '.join(have) or 'none'}")
        pairs = [(left[wanted[0]], right[wanted[1]])]
    elif len(left) == len(right) == 1:
        pairs = [(a.stacks[0], b.stacks[0])]
    else:
        pairs = [(left[name], right[name]) for name in left if name in right]
    used_a, used_b = {p.id for p, _ in pairs}, {p.id for _, p in pairs}
    return ApplicationDiff(
        a.target,
        b.target,
        tuple(_stack(a, one, b, other) for one, other in pairs),
        () if wanted else tuple(name for name in left if name not in used_a),
        () if wanted else tuple(name for name in right if name not in used_b),
    )


def _stack(a: Report, one: StackReport, b: Report, other: StackReport) -> StackDiff:
    ranks = _VERDICT_RANK.get(one.verdict), _VERDICT_RANK.get(other.verdict)
    verdict = Delta(
        "verdict", "verdict", None, one.verdict, other.verdict, _ranked(*ranks, one.verdict == other.verdict)
    )
    return StackDiff(
        one.id, other.id, verdict, _sorted(_findings(a, one, b, other)), _sorted(_functions(a, one.id, b, other.id))
    )


def _ranked(before: int | None, after: int | None, equal: bool) -> Change:
    if equal:
        return "same"
    if before is None or after is None or before == after:
        return "changed"
    return "better" if after < before else "worse"


def _sorted(deltas: Iterable[Delta]) -> tuple[Delta, ...]:
    return tuple(sorted(deltas, key=lambda d: (CHANGES.index(d.change), d.subject, d.module or "")))


def _place(report: Report, module: str | None) -> str | None:
    entries = {report.target, *report.entries}
    return ENTRY if module in entries else module


def _grouped(report: Report, stack: StackReport) -> dict[tuple[str, str, str], list[Finding]]:
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for finding in stack.findings:
        key = (finding.id, _place(report, finding.module) or "", finding.library or "")
        groups.setdefault(key, []).append(finding)
    return groups


def _findings(a: Report, one: StackReport, b: Report, other: StackReport) -> Iterable[Delta]:
    left, right = _grouped(a, one), _grouped(b, other)
    for key in sorted({*left, *right}):
        before, after = left.get(key, []), right.get(key, [])
        yield Delta("finding", key[0], key[1] or None, _words(before), _words(after), *_finding_change(before, after))


def _words(findings: list[Finding]) -> str | None:
    if not findings:
        return None
    worst = max(findings, key=_weight)
    return f"{worst.severity} ({worst.reach})"


def _weight(finding: Finding) -> tuple[int, int]:
    return SEVERITIES.index(finding.severity), REACHES.index(finding.reach)


def _finding_change(before: list[Finding], after: list[Finding]) -> tuple[Change, str]:
    heavy = any(finding.severity != "note" for finding in (*before, *after))
    old, new = ({name for finding in side for name in finding.functions} for side in (before, after))
    detail = "; ".join(
        f"{word} {', '.join(sorted(names)[:8])}" + (f" and {len(names) - 8} more" if len(names) > 8 else "")
        for word, names in (("also", new - old), ("no longer", old - new))
        if names and before and after
    )
    if not before or not after:
        return ("changed" if not heavy else "better" if before else "worse"), detail
    light, weight = max(map(_weight, before)), max(map(_weight, after))
    if light != weight:
        return ("changed" if not heavy else "worse" if weight > light else "better"), detail
    if old == new:
        return "same", detail
    change: Change = "worse" if new > old else "better" if new < old else "changed"
    return (change if heavy else "changed"), detail


def _functions(a: Report, one: str, b: Report, other: str) -> Iterable[Delta]:
    left, right = _states(a, one), _states(b, other)
    for key in sorted({*left, *right}):
        before, after = left.get(key), right.get(key)
        change: Change
        if before is None or after is None:
            # A function that came in and fails is worse; one that came in and works is only another program.
            bad = _STATE_RANK.get((before or after or ("", ""))[0], 3) >= _STATE_RANK["returns-error"]
            change = "changed" if not bad else "worse" if before is None else "better"
        else:
            change = _ranked(_STATE_RANK.get(before[0]), _STATE_RANK.get(after[0]), before == after)
        yield Delta(
            "function", f"{key[0]}!{key[1]}", None, before[0] if before else None, after[0] if after else None, change,
            f"limit: {after[1]}" if before and after and before[1] != after[1] and after[1] else "",
        )  # fmt: skip


def _states(report: Report, stack: str) -> dict[tuple[str, str], tuple[str, str]]:
    states: dict[tuple[str, str], tuple[str, str]] = {}
    for function in report.functions:
        state = function.state.get(stack, "unknown")
        key = function.library, function.name
        if key not in states or _STATE_RANK[state] > _STATE_RANK[states[key][0]]:
            states[key] = state, function.limit.get(stack, "")
    return states
