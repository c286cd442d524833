"""The parts of a terminal report behind verdict and findings: functions, device code, dependencies, closing."""

from __future__ import annotations

from zcheck.model.report import Report, StackReport
from zcheck.render import graphview, view
from zcheck.render.textwriter import Writer

NAMES_SHOWN = 24
ROWS_SHOWN = 40
_STATE_STYLES = {
    "not-exported": "red",
    "library-missing": "red",
    "ends-process": "red",
    "returns-error": "yellow",
    "partial": "yellow",
}


class DetailsWriter(Writer):
    """Writes what a report rests on."""

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
                    self.styled(f"{row.finding.id} ({view.severity_word(row.finding)}): {row.finding.message}"),
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
        for verdict, meaning in view.meanings(stacks):
            self.hang(self.styled((f"{view.VERDICT_WORDS[verdict]} = ", "dim")), self.styled((meaning, "dim")))
        self.console.print(self.styled((f"{view.DISCLAIMER} zcheck {version}, database {database}.", "dim")))


def _lead(branches: tuple[bool, ...], levels: int) -> str:
    """The lines in front of a tree entry; deeper than ``levels`` the depth as a number instead."""
    if not branches:
        return ""
    knee = "├─ " if branches[-1] else "└─ "
    if len(branches) > levels:
        return f"({len(branches)}) ".ljust(levels * 3 - 3) + knee
    return "".join("│  " if more else "   " for more in branches[:-1]) + knee
