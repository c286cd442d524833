"""Text for a terminal: the verdict first, then what to do, then why."""

from __future__ import annotations

from zcheck.model.finding import Finding
from zcheck.model.report import Applications, Report, StackReport
from zcheck.render import graphview, view
from zcheck.render.options import RenderOptions
from zcheck.render.textwriter import VERDICT_STYLES, Writer

FIRST_ACTIONS = 3
NAMES_SHOWN = 24
FINDING_NAMES = 8
"""functions named under a finding"""
QUIET_SHOWN = 12
"""programs without CUDA named by name"""
ROWS_SHOWN = 40
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
_STATE_STYLES = {
    "not-exported": "red",
    "library-missing": "red",
    "ends-process": "red",
    "returns-error": "yellow",
    "partial": "yellow",
}


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The text of a product: one verdict line a stack, then the parts of ``_ReportWriter``."""
    writer = _ReportWriter(options)
    if isinstance(product, Applications):
        writer.applications(product)
    else:
        writer.report(product)
    return writer.text()


class _ReportWriter(Writer):
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
            marks = [cells.get(stack.id, "") for stack in report.stacks]
            name = finding.id + (f" in {finding.module}" if finding.module else "")
            table.add_row(self.styled(name), *(self.styled((mark or "-", _STYLES.get(mark, "dim"))) for mark in marks))
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
            self.hang(
                self.styled((view.SEVERITY_WORDS[finding.severity].ljust(8), _STYLES[finding.severity])),
                self.styled((view.condition(finding), ""), (finding.id, "bold"), "  " + finding.title),
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
        shown = finding.evidence if self.options.verbose else finding.evidence[:EVIDENCE_SHOWN]
        for number, line in enumerate(shown):
            self.hang(self.styled(("evidence  " if number == 0 else " " * 10, "dim")), self.styled((line, "dim")), 4)
        if len(finding.evidence) > len(shown):
            self.console.print(
                self.styled((f"              {len(finding.evidence) - len(shown)} more with --verbose", "dim"))
            )
        if self.options.verbose:
            for number, ref in enumerate(finding.refs):
                self.hang(self.styled(("see       " if number == 0 else " " * 10, "dim")), self.styled((ref, "dim")), 4)

    def functions(self, report: Report) -> None:
        """CUDA functions: by library and state for one stack, else a table with a column a stack."""
        if not report.functions:
            return
        self.heading("CUDA functions in use")
        if len(report.stacks) != 1:
            self.function_table(report)
            return
        stack = report.stacks[0]
        for library, states in view.by_state(report.functions, stack.id).items():
            total = sum(len(functions) for functions in states.values())
            parts = ", ".join(f"{len(functions)} {view.state_word(state)}" for state, functions in states.items())
            self.hang(self.styled(f"{library}  "), self.styled(f"{view.plural(total, 'function')}: {parts}"), 2)
            for state, functions in states.items():
                if state == "implemented" and not self.options.verbose:
                    continue
                names = self.names([f.name for f in functions], NAMES_SHOWN)
                why = {f.limit.get(stack.id, "") for f in functions}
                about = f" ({''.join(why)})" if state == "library-missing" and len(why) == 1 and all(why) else ""
                lead = f"{view.state_word(state)}{about}: "
                self.hang(self.styled((lead, _STATE_STYLES.get(state, "dim"))), self.styled(names), 4)
                if state == "partial":
                    self.limits([(f.name, f.limit.get(stack.id, "")) for f in functions])

    def function_table(self, report: Report) -> None:
        """One row a function, those that need attention somewhere; the rest as names."""
        labels = view.short_labels(report)
        fine = [f for f in report.functions if f.state and set(f.state.values()) == {"implemented"}]
        rest = [f for f in report.functions if f not in fine]
        shown = rest if self.options.verbose else rest[:ROWS_SHOWN]
        if shown:
            table = self.table()
            table.add_column("", overflow="fold", min_width=16)
            for stack in report.stacks:
                table.add_column(self.styled(labels[stack.id]), overflow="fold", min_width=8)
            for function in shown:
                states = [function.state.get(stack.id, "unknown") for stack in report.stacks]
                cells = (self.styled((state, _STATE_STYLES.get(state, "dim"))) for state in states)
                table.add_row(self.styled(f"{function.library}!{function.name}"), *cells)
            self.console.print(table)
            limits = {(f.name, limit) for f in shown for limit in f.limit.values()}
            self.limits(sorted(limits))
        if len(rest) > len(shown):
            self.console.print(self.styled((f"  {len(rest) - len(shown)} more with --verbose", "dim")))
        if fine:
            names = self.names([f"{f.library}!{f.name}" for f in fine], NAMES_SHOWN)
            self.hang(self.styled(("implemented everywhere: ", "dim")), self.styled(names), 2)

    def limits(self, limits: list[tuple[str, str]]) -> None:
        """What a partial function does not do."""
        grouped: dict[str, list[str]] = {}
        for name, limit in limits:
            if limit:
                grouped.setdefault(limit, []).append(name)
        for limit, names in grouped.items():
            self.hang(self.styled(("limit: ", "dim")), self.styled((f"{self.names(names, 4)}: {limit}", "dim")), 6)

    def device_code(self, report: Report) -> None:
        """What each release does with the device code of each module."""
        if not report.device_code:
            return
        self.heading("Device code")
        for code in report.device_code:
            kinds = {kind: sum(e.kind == kind for e in code.entries) for kind in sorted({e.kind for e in code.entries})}
            inside = ", ".join(f"{count} {kind}" for kind, count in kinds.items()) or "no entries"
            self.console.print(self.styled(f"  {code.module} {code.section}: {inside}"))
            for release, replay in code.replay.items():
                words = view.replay_words(
                    replay.kernels, replay.loadable, replay.dropped, replay.stub, replay.empty, replay.lost
                )
                failing = f"; the load fails: {replay.load_fails}" if replay.load_fails else ""
                self.hang(self.styled(f"ZLUDA {release}: "), self.styled(words + failing), 4)
                for reason in replay.reasons[: None if self.options.verbose else 3]:
                    said = reason if self.options.verbose else view.without_names(reason)
                    self.hang(self.styled("- "), self.styled((said, "dim")), 6)
            for note in code.notes:
                self.hang(self.styled("- "), self.styled((note, "dim")), 4)

    def tree(self, report: Report) -> None:
        """The dependency tree; Windows' own modules only with ``verbose``."""
        graph = graphview.build(report, system=self.options.verbose)
        stack = report.stacks[0].id if report.stacks else None
        self.heading("Dependencies")
        levels = max(4, (self.options.width - 36) // 3)
        for line in graphview.tree(graph):
            lead = _lead(line.branches, levels)
            role = line.node.role(stack)
            words = [role] if line.node.kind != "entry" else []
            if line.edge:
                words += [graphview.KIND_WORDS[kind] for kind in line.edge.kinds]
                if line.edge.functions:
                    words.append(view.plural(len(line.edge.functions), "function"))
                if self.options.verbose and line.edge.resolved_by:
                    words.append(f"found by {line.edge.resolved_by}")
                if self.options.verbose:
                    words += line.edge.places
            if line.again:
                words.append("shown above")
            style = {"missing": "red", "absent": "red", "passed-through": "yellow", "replaced": "green"}.get(role, "")
            self.hang(
                self.styled(("  " + lead, "dim")),
                self.styled((line.node.name, style), ("  " + ", ".join(words), "dim")),
            )
        roles = {node.role(stack) for node in graph.nodes}
        for role, meaning in view.ROLE_MEANING.items():
            if role in roles:
                self.hang(self.styled((f"{role} = ", "dim")), self.styled((meaning, "dim")), 2)
        hidden = len(report.modules) - sum(
            1 for m in report.modules if not m.role or set(m.role.values()) != {"system"}
        )
        if hidden and not self.options.verbose:
            self.console.print(
                self.styled((f"  {view.plural(hidden, 'module')} of Windows left out; shown with --verbose", "dim"))
            )

    def ignored(self, report: Report) -> None:
        """Findings that the configuration ignores."""
        rows = view.merged(report, ignored=True)
        if rows:
            self.heading("Ignored by zcheck.toml")
            for row in rows:
                self.hang(
                    self.styled("- "),
                    self.styled(f"{row.finding.id} ({row.finding.severity}): {row.finding.message}"),
                    2,
                )

    def skipped(self, items: list[tuple[str, str]]) -> None:
        """What was not judged, and why."""
        if not items:
            return
        self.heading("Not judged")
        shown = items if self.options.verbose else items[:12]
        for path, reason in shown:
            self.hang(self.styled("- "), self.styled(f"{path}: {reason}"), 2)
        if len(items) > len(shown):
            self.console.print(self.styled((f"  {len(items) - len(shown)} more with --verbose", "dim")))

    def closing(self, version: str, database: str, stacks: list[StackReport] | tuple[StackReport, ...]) -> None:
        """What the words mean, and what this rests on."""
        self.console.print()
        seen = {stack.verdict for stack in stacks}
        for verdict, meaning in view.VERDICT_MEANING.items():
            if verdict in seen:
                self.hang(self.styled((f"{view.VERDICT_WORDS[verdict]} = ", "dim")), self.styled((meaning, "dim")))
        self.console.print(self.styled((f"{view.DISCLAIMER} zcheck {version}, database {database}.", "dim")))


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


def _lead(branches: tuple[bool, ...], levels: int) -> str:
    """The lines in front of a tree entry; deeper than ``levels`` the depth as a number instead."""
    if not branches:
        return ""
    knee = "├─ " if branches[-1] else "└─ "
    if len(branches) > levels:
        return f"({len(branches)}) ".ljust(levels * 3 - 3) + knee
    return "".join("│  " if more else "   " for more in branches[:-1]) + knee
