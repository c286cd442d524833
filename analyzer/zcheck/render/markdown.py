"""Markdown for a job summary, a wiki or a comment."""

from __future__ import annotations

from zcheck.model.finding import Finding
from zcheck.model.report import Applications, Report
from zcheck.render import mermaid, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import markdown_code as code
from zcheck.render.safe import markdown_text as prose

NAMES_SHOWN = 40
EVIDENCE_SHOWN = 8


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The whole product; a folder of programs starts with a table of them."""
    parts = []
    if isinstance(product, Applications):
        parts.append(f"# zcheck: {prose(product.target)}\n\n" + applications_table(product))
        parts += [report_section(report, 2) for report in product.applications]
        if product.skipped:
            parts.append("## Not judged\n\n" + bullets(f"{code(s.path)}: {prose(s.reason)}" for s in product.skipped))
        parts.append(closing(product.zcheck, product.database))
    else:
        parts += [report_section(product, 1), closing(product.zcheck, product.database)]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(head: list[str], rows: list[list[str]]) -> str:
    """A GitHub table; cells are Markdown already."""
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def bullets(items: object) -> str:
    """A list; items are Markdown already."""
    return "\n".join(f"* {item}" for item in items)  # type: ignore[attr-defined]


def applications_table(product: Applications) -> str:
    """One row a program."""
    rows = []
    for report in product.applications:
        verdicts = "<br>".join(
            f"**{view.VERDICT_WORDS[s.verdict]}** on {prose(view.stack_label(s))}" for s in report.stacks
        )
        first = next((stack.actions[0] for stack in report.stacks if stack.actions), "")
        rows.append([code(report.target), verdicts, prose(first)])
    return table(["program", "verdict", "first action"], rows)


def report_section(report: Report, level: int) -> str:
    """One application, headings from ``level`` on."""
    mark, sub = "#" * level, "#" * (level + 1)
    parts = [f"{mark} {prose(report.target)}", verdicts(report)]
    for title, text in (
        ("What to do first", actions(report)),
        ("Workload", workload(report)),
        ("Findings", findings(report, level + 2)),
        ("CUDA functions in use", functions(report)),
        ("Device code", device_code(report)),
        ("Dependencies", graph(report)),
        (
            "Ignored",
            bullets(f"{code(r.finding.id)} {prose(r.finding.message)}" for r in view.merged(report, ignored=True)),
        ),
        ("Not judged", bullets(f"{code(s.path)}: {prose(s.reason)}" for s in report.skipped)),
        ("Taken for granted", bullets(prose(a) for a in report.assumptions)),
    ):
        if text:
            parts.append(f"{sub} {title}\n\n{text}")
    return "\n\n".join(parts)


def verdicts(report: Report) -> str:
    """A line per stack."""
    lines = [
        f"**{view.VERDICT_WORDS[s.verdict]}** on {prose(view.stack_label(s))}: {prose(s.headline)}"
        for s in report.stacks
    ]
    return "  \n".join(lines) or "**UNKNOWN**: no stack was judged"


def actions(report: Report) -> str:
    """Numbered actions, by stack where they differ."""
    parts = []
    for steps, stacks in view.by_actions(report):
        items = "\n".join(f"{n}. {prose(action)}" for n, action in enumerate(steps, 1))
        labels = prose("; ".join(view.stack_label(stack) for stack in stacks))
        parts.append((f"{labels}:\n\n" if len(report.stacks) > 1 else "") + items)
    return "\n\n".join(parts)


def workload(report: Report) -> str:
    """A table of families; one column per stack where they differ."""
    families = view.families_of(report.stacks[0]) if report.stacks else []
    if not families:
        return ""
    reasons = {r.family: r.reasons for stack in report.stacks for r in stack.workload_reasons}
    alike = len({tuple(s.workload.items()) for s in report.stacks}) == 1
    shown = report.stacks[:1] if alike else report.stacks
    labels = view.short_labels(report)
    rows = [
        [
            prose(f),
            *(prose(s.workload.get(f, "unknown")) for s in shown),
            ", ".join(code(r) for r in reasons.get(f, ())[:4]),
        ]
        for f in families
    ]
    return table(["family", *(["need"] if alike else [prose(labels[s.id]) for s in shown]), "because of"], rows)


def names(items: tuple[str, ...] | list[str], limit: int = NAMES_SHOWN) -> str:
    """Names as code, the rest as a count."""
    more = f" and {len(items) - limit} more" if len(items) > limit else ""
    return ", ".join(code(name) for name in items[:limit]) + more


def findings(report: Report, level: int) -> str:
    """Findings by stack in a table, then each in full."""
    rows = view.merged(report)
    if not rows:
        return ""
    parts = []
    if len(report.stacks) > 1:
        labels = view.short_labels(report)
        matrix = [
            [code(f.id), code(f.module) if f.module else "", *(_cell(cells.get(s.id)) for s in report.stacks)]
            for f, cells in view.rule_rows(report)
        ]
        parts.append(table(["finding", "module", *(prose(labels[s.id]) for s in report.stacks)], matrix))
    parts += [finding(row.finding, level) for row in rows]
    return "\n\n".join(parts)


def _cell(item: Finding | None) -> str:
    return view.severity_word(item) if item else "–"


def finding(item: Finding, level: int) -> str:
    """One finding in full."""
    severity = view.severity_word(item, view.SEVERITY_WORDS)
    lines = [f"{'#' * min(level, 6)} {severity}: {code(item.id)} {prose(item.title)}", ""]
    where = [f"in {code(item.module)}"] if item.module else []
    where += [f"reach *{item.reach}* ({view.REACH_MEANING[item.reach]})", f"confidence {item.confidence}"]
    lines += [", ".join(where) + (f"; functions: {names(item.functions)}" if item.functions else ""), ""]
    if item.message:
        lines += [prose(item.message), ""]
    lines += [f"* **To do:** {prose(fix)}" for fix in item.fix]
    lines += [f"* Evidence: {code(view.evidence_line(line))}" for line in item.evidence[:EVIDENCE_SHOWN]]
    left = len(item.evidence[EVIDENCE_SHOWN:]) + item.evidence_left
    if left:
        lines.append(f"* Evidence: {view.plural(left, 'more line')}")
    lines += [f"* See {prose(ref)}" for ref in item.refs]
    return "\n".join(lines).rstrip()


def functions(report: Report) -> str:
    """A table of functions with their state per stack; implemented ones as a count only when there are many."""
    if not report.functions:
        return ""
    labels = view.short_labels(report)
    wanted = [
        f for f in report.functions if len(report.functions) <= NAMES_SHOWN or set(f.state.values()) != {"implemented"}
    ]
    rows = [
        [
            code(f.name),
            code(f.library),
            *(
                f.state.get(s.id, "unknown") + (f" ({prose(f.limit[s.id])})" if s.id in f.limit else "")
                for s in report.stacks
            ),
        ]
        for f in wanted[:200]
    ]
    left = len(report.functions) - len(rows)
    text = table(["function", "library", *(prose(labels[s.id]) for s in report.stacks)], rows)
    return text + (f"\n\n{view.plural(left, 'more function')} not listed." if left else "")


def device_code(report: Report) -> str:
    """What each release does with each module's kernels."""
    lines = []
    for item in report.device_code:
        for release, r in item.replay.items():
            words = view.replay_words(r.kernels, r.loadable, r.dropped, r.stub, r.empty, r.lost)
            fails = f"; the load fails: {prose(r.load_fails)}" if r.load_fails else ""
            lines.append(f"{code(item.module)} {code(item.section)} on ZLUDA {prose(release)}: {words}{fails}")
        lines += [f"{code(item.module)}: {prose(note)}" for note in item.notes]
    return bullets(lines)


def graph(report: Report) -> str:
    """The Mermaid graph of the report in a fence."""
    if not report.edges:
        return ""
    return f"```mermaid\n{mermaid.graph(report).rstrip()}\n```"


def closing(version: str, database: str) -> str:
    """What it rests on."""
    return f"{view.DISCLAIMER} zcheck {prose(version)}, database {prose(database)}."
