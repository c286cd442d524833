"""Text for a terminal: the verdict first, then what to do, then why."""

from __future__ import annotations

from zcheck.model.finding import Finding
from zcheck.model.report import Applications, Report, StackReport
from zcheck.render import view
from zcheck.render.options import RenderOptions
from zcheck.render.textdetails import DetailsWriter
from zcheck.render.textwriter import VERDICT_STYLES

FIRST_ACTIONS = 3
FINDING_NAMES = 8
"""functions named under a finding"""
QUIET_SHOWN = 12
"""programs without CUDA named by name"""
WHOLE_REPORTS = 1
"""programs of a folder whose reports are shown whole"""
EVIDENCE_SHOWN = 2
_STYLES = {
    **VERDICT_STYLES,
    "blocker": "bold red",
    "risk": "yellow",
    "setup": "cyan",
    "note": "dim",
}


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The text of a product: one verdict line a stack, then the parts of ``_ReportWriter``."""
    writer = _ReportWriter(options)
    if isinstance(product, Applications):
        writer.applications(product)
    else:
        writer.report(product)
    return writer.text()


class _ReportWriter(DetailsWriter):
    """Writes the parts of a report in the order in which people need them."""

    def applications(self, product: Applications) -> None:
        """The count of verdicts, a verdict line each, and the whole reports of as many as a person will read.

        Programs without CUDA share one line, and so do those that say the same; else each gets its first action and the
        ids of its findings.
        """
        told = [r for r in product.applications if any(s.verdict != "no-cuda" for s in r.stacks) or r.skipped]
        quiet = [r for r in product.applications if r not in told]
        whole = self.options.verbose or len(told) <= WHOLE_REPORTS
        summary = ", ".join(
            f"{count} {view.VERDICT_WORDS[verdict].lower()}" for verdict, count in view.counts(product).items()
        )
        programs = any(r.target.lower().endswith(".exe") for r in product.applications)
        many = view.plural(len(product.applications), *(("program",) if programs else ("library", "libraries")))
        head = f"{many} in {product.target}: {summary or 'none judged'}"
        self.console.print(self.styled(head))
        self.console.print()
        for alike in _alike(told) if not whole or len(told) > 1 else ():
            self.verdicts(alike[0], ", ".join(report.target for report in alike))
            if not whole:
                self._brief(alike[0])
        if quiet and (not whole or len(told) != 1):
            self._quiet(quiet)
        if not whole:
            self.console.print()
            self.console.print(self.styled("Name one of them to see its whole report, or use --verbose for all."))
        for report in told if whole else ():
            if len(told) > 1:
                self.console.print()
                self.console.print(self.styled(("─" * min(40, self.options.width), "dim")))
            self.report(report, closing=False)
        if quiet and whole and len(told) == 1:  # the one that matters comes first
            self.console.print()
            self._quiet(quiet)
        self.skipped([(s.path, s.reason) for s in product.skipped])
        self.closing(product.zcheck, product.database, [s for r in product.applications for s in r.stacks])

    def _quiet(self, reports: list[Report]) -> None:
        """Programs without CUDA on one line."""
        names = self.names([report.target for report in reports], QUIET_SHOWN)
        self.hang(self.styled(("NO CUDA", _STYLES["no-cuda"]), "  "), self.styled(names), 0)

    def _brief(self, report: Report) -> None:
        """The first action and the ids of the findings; those of notes only where there is nothing else."""
        actions = [stack.actions[0] for stack in report.stacks if stack.actions]
        if actions:
            self.hang(self.styled("first  "), self.styled(actions[0]), 4)
        found = [finding for stack in report.stacks for finding in stack.findings]
        ids = dict.fromkeys(f.id for f in found if f.severity != "note") or dict.fromkeys(f.id for f in found)
        if ids:
            self.hang(self.styled("found  "), self.styled(", ".join(ids)), 4)

    def report(self, report: Report, closing: bool = True) -> None:
        """One application."""
        self.verdicts(report)
        self.actions(report)
        self.workload(report)
        self.comparison(report)
        self.findings(report)
        self.functions(report)
        self.device_code(report)
        if self.options.tree:
            self.tree(report)
        self.ignored(report)
        self.skipped([(s.path, s.reason) for s in report.skipped])
        if report.assumptions:
            self.heading("Taken for granted")
            for assumption in report.assumptions:
                self.hang(self.styled("- "), self.styled(assumption), 2)
        if closing:
            self.closing(report.zcheck, report.database, report.stacks)

    def verdicts(self, report: Report, target: str = "") -> None:
        """The verdict lines; the first of them is the first line of the output. ``target`` names several at once."""
        if not report.stacks:
            self.console.print(self.styled(("UNKNOWN", "bold magenta"), f"  {report.target}: no stack was judged"))
        width = max((len(view.VERDICT_WORDS[s.verdict]) for s in report.stacks), default=0)
        for stack in report.stacks:
            word = view.VERDICT_WORDS[stack.verdict].ljust(width)
            self.hang(
                self.styled((word, _STYLES[stack.verdict]), "  "), self.styled(view.verdict_line(report, stack, target))
            )

    def actions(self, report: Report) -> None:
        """The first actions; those that differ by stack under the stack's name."""
        groups = view.by_actions(report)
        if not groups:
            return
        self.heading("What to do first")
        for actions, stacks in groups:
            if len(report.stacks) > 1:
                self.console.print(self.styled("  " + "; ".join(view.stack_label(s) for s in stacks) + ":"))
            shown = self._shown_actions(stacks[0])
            for number, action in enumerate(shown, 1):
                self.hang(self.styled((f"{number}. ", "bold")), self.styled(action), 2)
            if len(actions) > len(shown):
                self.console.print(self.styled((f"     {len(actions) - len(shown)} more with --verbose", "dim")))

    def workload(self, report: Report) -> None:
        """Workload families by need; once where the stacks agree."""
        if not any(stack.workload for stack in report.stacks):
            return
        self.heading("Workload")
        alike = len({tuple(stack.workload.items()) for stack in report.stacks}) == 1
        for stack in report.stacks[:1] if alike else report.stacks:
            if not alike:
                self.console.print(self.styled("  " + view.stack_label(stack) + ":"))
            for need, families in view.workload_words(stack).items():
                self.hang(
                    self.styled((f"{need}: ", "bold" if need == "required" else "")),
                    self.styled(", ".join(families)),
                    2,
                )
            for reason in stack.workload_reasons:
                if reason.reasons and reason.need in ("required", "optional"):
                    self.hang(
                        self.styled((f"{reason.family}: ", "dim")),
                        self.styled(("; ".join(self._by_module(reason.reasons)), "dim")),
                        4,
                    )
        if report.frameworks:
            self.hang(self.styled("frameworks: "), self.styled(", ".join(report.frameworks)), 2)

    def _by_module(self, reasons: tuple[str, ...]) -> list[str]:
        """Reasons of the form ``module: function`` with the module named once."""
        grouped: dict[str, list[str]] = {}
        for reason in reasons:
            module, colon, rest = reason.partition(": ")
            grouped.setdefault(module if colon else "", []).append(rest if colon else reason)
        return [(f"{module}: " if module else "") + self.names(names, 6) for module, names in grouped.items()]

    def comparison(self, report: Report) -> None:
        """With several stacks: one column each, verdicts and severities by finding."""
        if len(report.stacks) < 2:
            return
        labels = view.short_labels(report)
        self.heading("Stack by stack")
        table = self.table()
        table.add_column("", overflow="fold", min_width=16)
        for stack in report.stacks:
            table.add_column(self.styled(labels[stack.id]), overflow="fold", min_width=8)
        table.add_row(
            "verdict", *(self.styled((view.VERDICT_WORDS[s.verdict], _STYLES[s.verdict])) for s in report.stacks)
        )
        for finding, cells in view.rule_rows(report):
            name = finding.id + (f" in {finding.module}" if finding.module else "")
            found = (cells.get(stack.id) for stack in report.stacks)
            marks = ((view.severity_word(f), _STYLES[f.severity]) if f else ("-", "dim") for f in found)
            table.add_row(self.styled(name), *(self.styled(mark) for mark in marks))
        self.console.print(table)
        self.console.print(self.styled(("  - = not found on that stack", "dim")))

    def findings(self, report: Report) -> None:
        """Every finding once, the most severe first."""
        rows = view.merged(report)
        if not rows:
            return
        self.heading("Findings")
        labels = view.short_labels(report)
        told = {action for stack in report.stacks for action in self._shown_actions(stack)}
        notes = [row for row in rows if row.finding.severity == "note" and not self.options.verbose]
        for row in rows:
            if row in notes:
                continue
            finding = row.finding
            self.console.print()
            condition = "if used: " if view.conditional(finding) else ""
            self.hang(
                self.styled((view.SEVERITY_WORDS[finding.severity].ljust(8), _STYLES[finding.severity])),
                self.styled(condition, (finding.id, "bold"), "  " + finding.title),
                2,
            )
            self.finding_body(finding, [labels[s] for s in row.stacks] if len(report.stacks) > 1 else [], told)
        if notes:
            self.console.print()
            for line in dict.fromkeys(self._note(row.finding) for row in notes):
                self.hang(self.styled(("NOTE    ", "dim")), self.styled(line), 2)
            self.console.print(self.styled(("          in full with --verbose", "dim")))

    def _note(self, finding: Finding) -> str:
        """A note on one line: id, module, the functions, title."""
        where = f" in {finding.module}" if finding.module else ""
        about = f" ({self.names(finding.functions, 3)})" if finding.functions else ""
        return f"{finding.id}{where}{about}: {finding.title}"

    def _shown_actions(self, stack: StackReport) -> tuple[str, ...]:
        return stack.actions if self.options.verbose else stack.actions[:FIRST_ACTIONS]

    def finding_body(self, finding: Finding, stacks: list[str], told: set[str]) -> None:
        """Where, why, what to do, and the evidence of one finding; advice that was ``told`` above is not repeated."""
        place = " ".join(
            part
            for part in (finding.module and f"in {finding.module}", finding.library and f"for {finding.library}")
            if part
        )
        where = "; ".join(
            part
            for part in (
                place,
                f"reach: {finding.reach} ({view.REACH_MEANING[finding.reach]})",
                f"confidence: {finding.confidence}" if finding.confidence != "high" or self.options.verbose else "",
                "fails before the program's own causes" if finding.first else "",
                f"on {', '.join(stacks)}" if stacks else "",
            )
            if part
        )
        self.hang(self.styled(("where     ", "dim")), self.styled(where), 4)
        named = all(name in finding.message for name in finding.functions[:FINDING_NAMES])
        if finding.functions and (self.options.verbose or not named):
            self.hang(self.styled(("functions ", "dim")), self.styled(self.names(finding.functions, FINDING_NAMES)), 4)
        if finding.message:
            self.hang(self.styled(("why       ", "dim")), self.styled(finding.message), 4)
        fixes = finding.fix if self.options.verbose else [fix for fix in finding.fix if fix not in told]
        for number, fix in enumerate(fixes):
            self.hang(self.styled(("to do     " if number == 0 else " " * 10, "dim")), self.styled(fix), 4)
        self._evidence(finding)
        if self.options.verbose:
            for number, ref in enumerate(finding.refs):
                self.hang(self.styled(("see       " if number == 0 else " " * 10, "dim")), self.styled((ref, "dim")), 4)

    def _evidence(self, finding: Finding) -> None:
        """The first lines of evidence, and where the rest is."""
        shown = finding.evidence if self.options.verbose else finding.evidence[:EVIDENCE_SHOWN]
        for number, line in enumerate(shown):
            lead = self.styled(("evidence  " if number == 0 else " " * 10, "dim"))
            self.hang(lead, self.styled((view.evidence_line(line), "dim")), 4)
        left = ((len(finding.evidence) - len(shown), "--verbose"), (finding.evidence_left, "--evidence"))
        more = [f"{count} more with {option}" for count, option in left if count]
        if more:
            self.console.print(self.styled((" " * 14 + ", ".join(more), "dim")))


def _alike(reports: list[Report]) -> list[list[Report]]:
    """Reports in groups that would read the same but for the program's name, in the order of the first of each."""
    groups: dict[object, list[Report]] = {}
    for report in reports:
        name = report.target.replace("\\", "/").rsplit("/", 1)[-1]
        key = tuple(
            (
                s.id,
                s.verdict,
                s.headline,
                *(action.replace(name, "") for action in s.actions[:1]),
                *dict.fromkeys(finding.id for finding in s.findings),
            )
            for s in report.stacks
        )
        groups.setdefault(key, []).append(report)
    return list(groups.values())
