"""Markdown of an audit, for a job summary or an issue."""

from __future__ import annotations

from collections.abc import Iterable

from zcheck.model.audit import Audit
from zcheck.render import audit_view, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import markdown_code, markdown_text


def render(audit: Audit, options: RenderOptions) -> str:
    """Totals, the table, causes, releases, changes, and what was not judged."""
    lines = [f"## {markdown_text(audit.target)}: {markdown_text(audit_view.totals(audit))}", ""]
    if not audit.complete:
        lines += ["**Stopped before the end: what follows is what was done until then.**", ""]
    labels = audit_view.labels(audit)
    head = [
        "Application",
        *(labels.values() if len(labels) > 1 else ["Verdict"]),
        "Needs",
        "Top cause",
        "First action",
        "CUDA",
        "Size",
    ]
    lines += [_row(markdown_text(cell) for cell in head), _row("---" for _ in head)]
    for row in audit.applications:
        verdicts = [view.VERDICT_WORDS[row.verdict.get(stack.id, "unknown")] for stack in audit.stacks]
        name = markdown_code(row.path) + audit_view.more(row)
        rest = (audit_view.needs(row), row.top_cause, row.first_action, row.cuda, audit_view.size(row.size))
        lines.append(_row([name, *verdicts, *(markdown_text(cell) for cell in rest)]))
    if len(audit.stacks) == 1:
        lines += ["", f"Judged for {markdown_text(next(iter(labels.values())))}."]
    if audit.causes:
        lines += ["", "### Causes", ""]
        for group in audit.causes:
            on = f" on {markdown_text(labels[group.stack])}" if len(audit.stacks) > 1 else ""
            lines.append(
                f"- **{markdown_text(group.title)}** ({markdown_code(group.id)}{on}): {audit_view.waits(group)}"
            )
            if group.action:
                lines.append(f"  - {markdown_text(group.action)}")
    if best := audit_view.best(audit):
        lines += ["", f"**{markdown_text(best)}**"]
    if audit.changes is not None:
        lines += ["", "### Changes", ""]
        lines += [
            f"- {change.kind}: {markdown_code(change.path)} "
            f"on {markdown_text(labels.get(change.stack, change.stack))}: "
            f"{change.before or '-'} → {change.after or '-'}"
            for change in audit.changes
        ] or ["None."]
    other = [(row.path, finding) for row in audit.applications for finding in row.findings]
    if other:
        lines += ["", "<details><summary>All findings</summary>", ""]
        for path, finding in other:
            where = ", ".join(f"{severity} on {labels[stack]}" for stack, severity in finding.severity.items())
            ignored = " (ignored)" if finding.ignored else ""
            lines.append(f"- {markdown_code(path)}: {markdown_code(finding.id)} {markdown_text(where)}{ignored}")
        lines += ["", "</details>"]
    if audit.skipped:
        lines += ["", "<details><summary>Not judged</summary>", ""]
        lines += [f"- {markdown_code(item.path)}: {markdown_text(item.reason)}" for item in audit.skipped]
        lines += ["", "</details>"]
    lines += ["", *(markdown_text(text) for text in audit.assumptions)]
    lines += ["", markdown_text(f"{view.DISCLAIMER} zcheck {audit.zcheck}, database {audit.database}.")]
    return "\n".join(lines) + "\n"


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
