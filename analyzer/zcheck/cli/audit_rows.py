"""From single programs to rows: programs of one application that are judged alike share a row."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import msgspec

from zcheck.model.audit import AuditFinding, AuditRow

Made = tuple[AuditRow, tuple[int, ...], str]
"""a row, its exit codes, its page"""


def merge(rows: Iterable[Made]) -> list[Made]:
    """Rows of one application joined where verdicts, causes and findings are the same; programs without CUDA go to the
    row of those with CUDA, if there is one."""
    by_application: dict[str, dict[object, list[Made]]] = {}
    for made in rows:
        by_application.setdefault(made[0].application, {}).setdefault(_judgement(made[0]), []).append(made)
    found: list[Made] = []
    for groups in by_application.values():
        joined = [_join(group) for group in groups.values()]
        plain = [made for made in joined if set(made[0].verdict.values()) == {"no-cuda"}]
        rest = [made for made in joined if made not in plain]
        if plain and rest:
            others = {program for made in plain for program in (*made[0].programs, *made[0].others)}
            row, codes, page = rest[0]
            rest[0] = (msgspec.structs.replace(row, others=tuple(sorted({*row.others, *others}))), codes, page)
            found += rest
        else:
            found += joined
    return found


class Sharing:
    """Makes equal parts of many rows one object, so that a hundred thousand rows fit into memory."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, object], object] = {}

    def row(self, row: AuditRow) -> AuditRow:
        """An equal row."""
        changed = {name: self._one(name, getattr(row, name)) for name in _SHARED}
        return msgspec.structs.replace(row, **changed)

    def _one(self, name: str, value: object) -> object:
        key = value if isinstance(value, str) else msgspec.msgpack.encode(value)
        return self._known.setdefault((name if not isinstance(value, str) else "", key), value)


_SHARED = (
    "kind", "verdict", "workload", "top_cause", "cause_id", "causes", "first_action", "blockers", "risks", "cuda",
    "frameworks", "programs", "findings",
)  # fmt: skip


def _judgement(row: AuditRow) -> object:
    severities = tuple((f.id, f.reach, tuple(f.severity.items()), f.ignored) for f in row.findings)
    if row.problem:
        return (row.path, row.problem)
    workload = tuple(row.workload.items())
    verdicts = tuple(row.verdict.items())
    if {verdict for _, verdict in verdicts} == {"no-cuda"}:
        return (verdicts, row.vendor)
    return (row.vendor, verdicts, row.top_cause, tuple(row.causes.items()), workload, severities)


def _join(group: Sequence[Made]) -> Made:
    group = sorted(group, key=lambda made: made[0].path)
    row, _, page = group[0]
    if len(group) == 1:
        return group[0]
    rows = [made[0] for made in group]
    joined = msgspec.structs.replace(
        row,
        programs=tuple(sorted({program for each in rows for program in each.programs})),
        others=tuple(sorted({program for each in rows for program in each.others})),
        first_action=_action(rows),
        cuda=joined_versions(part for each in rows for part in each.cuda.split(", ") if part),
        frameworks=tuple(dict.fromkeys(name for each in rows for name in each.frameworks)),
        blockers=_most([each.blockers for each in rows]),
        risks=_most([each.risks for each in rows]),
        findings=_findings(rows),
    )
    return joined, tuple(_worse(pair) for pair in zip(*(made[1] for made in group), strict=True)), page


def _action(rows: Sequence[AuditRow]) -> str:
    """The first row's action; programs without CUDA share a row whatever else they lack, and then none where theirs
    differ, for one program's missing DLL is not the others'."""
    actions = {row.first_action for row in rows}
    plain = set(rows[0].verdict.values()) == {"no-cuda"}
    return "" if plain and len(actions) > 1 else rows[0].first_action


def _worse(codes: Sequence[int]) -> int:
    """Of several exit codes the one that counts: 1 before 3 before 0."""
    return next((code for code in (4, 2, 1, 3) if code in codes), 0)


def worst_exit(codes: Iterable[int]) -> int:
    """The exit code over all rows."""
    return _worse(tuple(set(codes)))


def _most(counts: Sequence[dict[str, int]]) -> dict[str, int]:
    return {key: max(each.get(key, 0) for each in counts) for key in counts[0]}


def _findings(rows: Sequence[AuditRow]) -> tuple[AuditFinding, ...]:
    found = {(f.id, f.ignored): f for row in reversed(rows) for f in row.findings}
    first = {(f.id, f.ignored): None for row in rows for f in row.findings}
    return tuple(found[key] for key in first)


def joined_versions(versions: Iterable[str]) -> str:
    """``11.8, 12``: each once, in order; a major version alone says nothing beside one of its minor versions."""
    found = set(versions)
    exact = {version.split(".")[0] for version in found if "." in version}
    return ", ".join(sorted((v for v in found if "." in v or v not in exact), key=_number))


def _number(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"\d+", version))
