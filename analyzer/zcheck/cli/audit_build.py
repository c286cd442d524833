"""From the rows of an audit to the one object that every format is made from."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Literal

from zcheck import __version__
from zcheck.model.audit import Audit, AuditRow, AuditStack, CauseGroup, ReleaseCount, RowChange
from zcheck.model.base import Skipped
from zcheck.model.report import SCHEMA, VERDICTS, Verdict
from zcheck.model.stack import Stack

if TYPE_CHECKING:
    from zcheck.match import Rule

SERVED: tuple[Verdict, ...] = ("verified", "likely", "needs-setup")
Sort = Literal["verdict", "path", "cause", "size", "cuda"]
SORTS: tuple[Sort, ...] = ("verdict", "path", "cause", "size", "cuda")
_BETTER: tuple[Verdict, ...] = ("blocked", "unknown", "at-risk", "needs-setup", "likely", "verified")


def build_audit(
    target: str,
    database: str,
    stacks: Sequence[Stack],
    rows: Iterable[AuditRow],
    skipped: Iterable[Skipped] = (),
    *,
    sort: Sort = "verdict",
    only: Sequence[Verdict] = (),
    complete: bool = True,
    assumptions: Sequence[str] = (),
    before: Audit | None = None,
    advice: Mapping[str, str] | None = None,
) -> Audit:
    """The audit of all rows. ``only`` leaves rows of other verdicts out of the list and of the causes, not out of the
    counts and changes; ``before``: an earlier audit to compare with; ``advice``: by finding id, what is advised to
    everybody alike."""
    every = sorted(rows, key=_order(sort, [stack.id for stack in stacks]))
    shown = [row for row in every if not only or set(only) & set(row.verdict.values())]
    ids = [stack.id for stack in stacks]
    return Audit(
        schema=SCHEMA,
        zcheck=__version__,
        database=database,
        target=target,
        stacks=tuple(AuditStack(s.id, s.zluda, s.launch_mode, s.hip_sdk, s.gpu) for s in stacks),
        applications=tuple(shown),
        causes=tuple(group for stack in ids for group in _causes(shown, stack, advice or {})),
        releases=_releases(every, ids),
        skipped=tuple(sorted(dict.fromkeys(skipped), key=lambda item: (item.path, item.reason))),
        complete=complete,
        filters=tuple(f"only {verdict}" for verdict in only),
        assumptions=tuple(assumptions),
        changes=changes(before, every, complete) if before is not None else None,
    )


def worst(row: AuditRow) -> Verdict:
    """The most severe verdict of a row."""
    seen = set(row.verdict.values())
    return next((verdict for verdict in VERDICTS if verdict in seen), "unknown")


def _order(sort: Sort, stacks: Sequence[str]) -> Callable[[AuditRow], tuple[object, ...]]:
    first = stacks[0] if stacks else ""

    def key(row: AuditRow) -> tuple[object, ...]:
        path = (row.path.lower(), row.path)
        if sort == "verdict":
            return (VERDICTS.index(worst(row)), row.causes.get(first, ""), *path)
        if sort == "cause":
            return (row.cause_id == "", row.cause_id, *path)
        if sort == "size":
            return (-row.size, *path)
        if sort == "cuda":
            return (row.cuda == "", row.cuda, *path)
        return path

    return key


def advice_of(rules: Iterable[Rule]) -> dict[str, str]:
    """The first advice of each rule that names nothing of the program at hand."""
    found = {rule.id: " ".join(rule.fix[0].split()) for rule in rules if rule.fix}
    return {key: text for key, text in found.items() if "{" not in text}


def _causes(rows: Sequence[AuditRow], stack: str, advice: Mapping[str, str]) -> list[CauseGroup]:
    groups: dict[tuple[str, Verdict], list[AuditRow]] = {}
    for row in rows:
        cause = row.causes.get(stack, "")
        if cause:
            groups.setdefault((cause, row.verdict[stack]), []).append(row)
    found = []
    for (cause, verdict), members in groups.items():
        title = next((f.title for row in members for f in row.findings if f.id == cause), "")
        names = tuple(sorted(row.path for row in members))
        action = _action(members, cause, stack) or advice.get(cause, "")
        found.append(CauseGroup(stack, cause, title, action, verdict, names))
    return sorted(found, key=lambda g: (VERDICTS.index(g.verdict), -len(g.applications), g.id))


def _action(members: Sequence[AuditRow], cause: str, stack: str) -> str:
    """The first action that all of a group have alike; empty where they differ, for one of them may be named in it.
    A row's action is that of the first stack, and says nothing of the others."""
    if any(row.cause_id != cause or next(iter(row.verdict)) != stack for row in members):
        return ""
    actions = {row.first_action for row in members}
    return actions.pop() if len(actions) == 1 else ""


def _releases(rows: Sequence[AuditRow], stacks: Sequence[str]) -> tuple[ReleaseCount, ...]:
    found = []
    vendor = sum(row.vendor for row in rows)
    for stack in stacks:
        seen = [row.verdict[stack] for row in rows if stack in row.verdict and not row.vendor]
        counts: dict[str, int] = {verdict: seen.count(verdict) for verdict in VERDICTS if verdict in seen}
        found.append(ReleaseCount(stack, sum(counts.get(verdict, 0) for verdict in SERVED), counts, vendor))
    # Served most, then fewest that cannot work; among equals the order of the command line.
    return tuple(sorted(found, key=lambda r: (-r.served, r.counts.get("blocked", 0), r.counts.get("unknown", 0))))


def changes(before: Audit, rows: Sequence[AuditRow], complete: bool = True) -> tuple[RowChange, ...]:
    """Programs whose verdict is another than in an earlier audit, on the stacks that both have; new and gone ones.

    Of an audit that was stopped, or that showed some verdicts only, nothing is said to be gone or new.
    """
    old, new = _verdicts(before.applications), _verdicts(rows)
    shared = [stack.id for stack in before.stacks]
    found: list[RowChange] = []
    for program in sorted(old.keys() | new.keys()):
        was, now = old.get(program, {}), new.get(program, {})
        for stack in shared:
            one, two = was.get(stack, ""), now.get(stack, "")
            if one == two or (not one and before.filters) or (not two and not complete) or not (one or two):
                continue
            if one and not two and program in new:
                continue  # a stack that was not asked for this time
            found.append(RowChange(program, stack, one, two, _direction(one, two)))
    return tuple(found)


def _verdicts(rows: Iterable[AuditRow]) -> dict[str, dict[str, Verdict]]:
    found: dict[str, dict[str, Verdict]] = {}
    for row in rows:
        place = f"{row.application}/" if row.application else ""
        for program in row.programs:
            found[place + program] = row.verdict
        for program in row.others:
            found[place + program] = dict.fromkeys(row.verdict, "no-cuda")
    return found


def _direction(before: str, after: str) -> Literal["better", "worse", "other", "new", "gone"]:
    if not before:
        return "new"
    if not after:
        return "gone"
    if before not in _BETTER or after not in _BETTER:
        return "other"
    return "better" if _BETTER.index(after) > _BETTER.index(before) else "worse"
