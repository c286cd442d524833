"""Text of an audit for a terminal: totals first, then a row an application, then the causes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from zcheck.model.audit import Audit, AuditRow
from zcheck.render import audit_view, view
from zcheck.render.options import RenderOptions
from zcheck.render.textwriter import VERDICT_STYLES, Writer

if TYPE_CHECKING:
    from rich.text import Text

NAMES_SHOWN = 4
SKIPPED_SHOWN = 12
_CHANGE_STYLES = {"worse": "bold red", "better": "bold green", "new": "cyan", "gone": "dim", "other": ""}


def render(audit: Audit, options: RenderOptions) -> str:
    """The text of an audit."""
    writer = _AuditWriter(audit, options)
    writer.whole()
    return writer.text()


class _AuditWriter(Writer):
    """Writes the parts of an audit in the order in which people need them."""

    def __init__(self, audit: Audit, options: RenderOptions) -> None:
        super().__init__(options)
        self.audit = audit
        self.labels = audit_view.labels(audit)

    def line(self, *parts: str | tuple[str, str], indent: int = 0) -> None:
        """One line, wrapped under itself."""
        from rich.padding import Padding

        self.console.print(Padding(self.styled(*parts), (0, 0, 0, indent)))

    def whole(self) -> None:
        """Everything."""
        audit = self.audit
        self.line((audit_view.totals(audit), "bold"))
        if len(audit.stacks) == 1:
            self.line(f"on {audit_view.label(audit.stacks[0])}")
        if not audit.complete:
            self.line(("Stopped before the end: this is what was done until then.", "bold yellow"))
        if audit.applications:
            self.console.print()
            self.rows() if self.options.width >= 72 else self.blocks()
        self.causes()
        if best := audit_view.best(audit):
            self.heading("Which release")
            self.line(best, indent=2)
            for release in audit.releases:
                counted = ", ".join(f"{n} {view.VERDICT_WORDS[v].lower()}" for v, n in release.counts.items())  # type: ignore[index]
                self.line(f"{self.labels[release.stack]}: {counted}", indent=2)
        self.changes()
        self.ignored()
        if self.options.verbose:
            self.findings()
        self.skipped()
        for text in audit.assumptions:
            self.line((text, "dim"))
        self.console.print()
        seen = {verdict for row in audit.applications for verdict in row.verdict.values()}
        for verdict, meaning in view.VERDICT_MEANING.items():
            if verdict in seen:
                self.line((f"{view.VERDICT_WORDS[verdict]} = {meaning}", "dim"))
        self.line((f"{view.DISCLAIMER} zcheck {audit.zcheck}, database {audit.database}.", "dim"))

    def rows(self) -> None:
        """A table, a row an application."""
        from rich.table import Table

        table = Table(box=None, pad_edge=False, header_style="bold", expand=True)
        for stack in self.audit.stacks:
            several = len(self.audit.stacks) > 1
            table.add_column(self.styled(self.labels[stack.id] if several else "Verdict"), min_width=7, overflow="fold")
        table.add_column("Application", overflow="fold", ratio=4)
        table.add_column("Why, and what to do first", overflow="fold", ratio=6)
        table.add_column("CUDA", overflow="fold", max_width=6)
        table.add_column("Size", justify="right", no_wrap=True)
        for row in self.audit.applications:
            words = [row.verdict.get(stack.id, "unknown") for stack in self.audit.stacks]
            table.add_row(
                *(self.styled((view.VERDICT_WORDS[word], VERDICT_STYLES[word])) for word in words),
                self.styled(audit_view.name(row), (self.about(row), "dim")),
                self.why(row),
                self.styled(row.cuda or "-"),
                self.styled(audit_view.size(row.size)),
            )
        self.console.print(table)

    def why(self, row: AuditRow) -> Text:
        """Cause and first action of a row."""
        shows_action = row.first_action and audit_view.worst(row) != "no-cuda"
        action = f"{chr(10) if row.top_cause else ''}" if shows_action else ""
        cause = row.top_cause + (f" [{row.cause_id}]" if row.cause_id else "")
        text = self.styled(cause)
        if action:
            text.append("\n")
        return text.append_text(self.styled((row.first_action, "dim"))) if shows_action else text

    def about(self, row: AuditRow) -> str:
        """Workload, framework and kind, behind the name."""
        parts = [audit_view.needs(row), "; ".join(row.frameworks)]
        if row.kind != "program":
            parts.append(audit_view.KIND_WORDS[row.kind])
        if row.others:
            parts.append(f"{view.plural(len(row.others), 'program')} without CUDA beside it")
        told = "; ".join(part for part in parts if part)
        return f"  {told}" if told else ""

    def blocks(self) -> None:
        """For narrow terminals: a few lines an application."""
        for row in self.audit.applications:
            for stack in self.audit.stacks:
                verdict = row.verdict.get(stack.id, "unknown")
                on = f" on {self.labels[stack.id]}" if len(self.audit.stacks) > 1 else ""
                self.line((view.VERDICT_WORDS[verdict], VERDICT_STYLES[verdict]), on)
            self.line(audit_view.name(row), indent=2)
            for text in (row.top_cause, row.first_action if audit_view.worst(row) != "no-cuda" else ""):
                if text:
                    self.line((text, "dim"), indent=4)

    def causes(self) -> None:
        """What several applications wait for."""
        if not self.audit.causes:
            return
        self.heading("Causes")
        first = self.audit.stacks[0].id
        several = len(self.audit.stacks) > 1
        groups = [g for g in self.audit.causes if self.options.verbose or g.stack == first]
        for group in groups:
            on = f" on {self.labels[group.stack]}" if several else ""
            self.line(
                (audit_view.waits(group) + on, VERDICT_STYLES[group.verdict]), f": {group.title} [{group.id}]", indent=2
            )
            shown = group.applications if self.options.verbose else group.applications[:NAMES_SHOWN]
            more = len(group.applications) - len(shown)
            self.line((", ".join(shown) + (f" and {more} more" if more else ""), "dim"), indent=4)
            if group.action:
                self.line((group.action, "dim"), indent=4)
        if several and len(groups) < len(self.audit.causes):
            self.line(("Causes on the other stacks with --verbose", "dim"), indent=2)

    def changes(self) -> None:
        """What changed since the audit given with --since."""
        if self.audit.changes is None:
            return
        self.heading("Changes since the earlier audit")
        if not self.audit.changes:
            self.line("none", indent=2)
        for change in self.audit.changes:
            on = f" on {change.stack}" if len(self.audit.stacks) > 1 else ""
            said = f"{change.before or 'not there'} -> {change.after or 'not there'}"
            self.line((change.kind.ljust(7), _CHANGE_STYLES[change.kind]), f"{change.path}{on}: {said}", indent=2)

    def ignored(self) -> None:
        """Findings that zcheck.toml ignores."""
        found: dict[str, list[str]] = {}
        for row in self.audit.applications:
            for finding in row.findings:
                if finding.ignored:
                    found.setdefault(f"{finding.id}: {finding.title}", []).append(row.path)
        if found:
            self.heading("Ignored by zcheck.toml")
            for text, paths in found.items():
                self.line(f"{text} ({view.plural(len(paths), 'application')})", indent=2)

    def findings(self) -> None:
        """Every finding of every row."""
        self.heading("Findings")
        for row in self.audit.applications:
            if row.findings:
                self.line(row.path, indent=2)
            for finding in row.findings:
                where = ", ".join(
                    f"{severity} on {self.labels[stack]}" if len(self.audit.stacks) > 1 else severity
                    for stack, severity in finding.severity.items()
                )
                self.line((f"{finding.id}: {finding.title} ({where}, reach {finding.reach})", "dim"), indent=4)

    def skipped(self) -> None:
        """What was not judged."""
        items = self.audit.skipped
        if not items:
            return
        self.heading("Not judged")
        shown = items if self.options.verbose else items[:SKIPPED_SHOWN]
        for item in shown:
            self.line(f"- {item.path}: {item.reason}", indent=2)
        if len(items) > len(shown):
            self.line((f"{len(items) - len(shown)} more with --verbose", "dim"), indent=2)
