"""What several audit formats say in the same words."""

from __future__ import annotations

from zcheck.model.audit import Audit, AuditRow, AuditStack, CauseGroup
from zcheck.model.report import VERDICTS, WORKLOADS, Verdict
from zcheck.render import view

KIND_WORDS = {
    "program": "program",
    "frozen": "frozen Python program",
    "python-environment": "Python environment",
    "plugins": "libraries without a program",
}


def label(stack: AuditStack) -> str:
    """``ZLUDA v6 + HIP SDK 6.4``, with the launch mode and GPU where they are not the usual."""
    hip = "TheRock" if stack.hip_sdk == "therock" else f"HIP SDK {stack.hip_sdk}"
    mode = ", staged" if stack.launch_mode == "staged" else ""
    return f"ZLUDA {stack.zluda} + {hip}{mode}" + (f" on {stack.gpu}" if stack.gpu else "")


def labels(audit: Audit) -> dict[str, str]:
    """The shortest labels that tell the stacks apart, by id."""
    same = all(
        (s.launch_mode, s.hip_sdk, s.gpu) == (audit.stacks[0].launch_mode, audit.stacks[0].hip_sdk, audit.stacks[0].gpu)
        for s in audit.stacks
    )
    return {stack.id: stack.zluda if same and len(audit.stacks) > 1 else label(stack) for stack in audit.stacks}


def worst(row: AuditRow) -> Verdict:
    """The most severe verdict of a row."""
    seen = set(row.verdict.values())
    return next((verdict for verdict in VERDICTS if verdict in seen), "unknown")


def name(row: AuditRow) -> str:
    """The path, and how many programs and libraries share the row."""
    return row.path + more(row)


def more(row: AuditRow) -> str:
    """`` and 3 more``, behind the first one's name; where programs and libraries share the row, how many of each."""
    if len(row.programs) < 2:
        return ""
    programs = sum(path.lower().endswith((".exe", ".scr")) for path in row.programs)
    libraries = len(row.programs) - programs
    said = f" and {len(row.programs) - 1} more"
    if not programs or not libraries:
        return said
    return f"{said} ({view.plural(programs, 'program')}, {view.plural(libraries, 'library', 'libraries')} in all)"


def needs(row: AuditRow) -> str:
    """Required workload families, optional ones behind."""
    families = [f for f in WORKLOADS if f in row.workload] + sorted(f for f in row.workload if f not in WORKLOADS)
    required = [f for f in families if row.workload[f] == "required"]
    optional = [f for f in families if row.workload[f] == "optional"]
    return ", ".join(required + [f"{f} (optional)" for f in optional])


def counts(audit: Audit) -> dict[Verdict, int]:
    """Rows by their worst verdict, the most severe first."""
    seen = [worst(row) for row in audit.applications]
    return {verdict: seen.count(verdict) for verdict in VERDICTS if verdict in seen}


def totals(audit: Audit) -> str:
    """``12 applications: 3 blocked, 9 likely``."""
    parts = [f"{count} {view.VERDICT_WORDS[verdict].lower()}" for verdict, count in counts(audit).items()]
    head = view.plural(len(audit.applications), "application")
    only = f" ({'; '.join(audit.filters)})" if audit.filters else ""
    return head + only + (f": {', '.join(parts)}" if parts else "")


def waits(group: CauseGroup) -> str:
    """``12 applications wait for this (blocked)``."""
    count = len(group.applications)
    verb = "waits" if count == 1 else "wait"
    return f"{view.plural(count, 'application')} {verb} for this ({view.VERDICT_WORDS[group.verdict].lower()})"


def best(audit: Audit) -> str:
    """Which release serves most of them; empty with one stack."""
    if len(audit.releases) < 2 or not audit.applications:
        return ""
    known = {stack.id: label(stack) for stack in audit.stacks}
    top = audit.releases[0]
    equal = [r for r in audit.releases if r.served == top.served and r.counts == top.counts]
    total = sum(top.counts.values())
    if not total:
        return ""
    names = " and ".join(known[r.stack] for r in equal)
    verb = "serves" if len(equal) == 1 else "serve equally"
    said = f"{names} {verb} most: {top.served} of {total} are likely, verified or need setup only."
    if not top.served:  # a best one of none would sound like advice
        said = f"On no release is any of {total} likely, verified or in need of setup only."
    libraries = view.plural(top.vendor, "row")
    return f"{said} NVIDIA's own libraries are not counted ({libraries})." if top.vendor else said


def size(count: int) -> str:
    """``1.5 GB``."""
    value, units = float(count), ["B", "KB", "MB", "GB", "TB"]
    while value >= 1000 and len(units) > 1:
        value /= 1000
        units.pop(0)
    return f"{value:.0f} {units[0]}" if units[0] == "B" or value >= 10 else f"{value:.1f} {units[0]}"
