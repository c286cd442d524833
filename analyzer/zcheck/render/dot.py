"""The dependency graph in the DOT language of Graphviz."""

from __future__ import annotations

from zcheck.model.report import Applications, Report
from zcheck.render import graphview, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import dot_string, visible

_FILL = {
    "replaced": "#d9f2e3",
    "passed-through": "#fdf0d0",
    "absent": "#ffe0dd",
    "missing": "#ffe0dd",
    "system": "#eceff3",
    "bundle": "#dfeaff",
}
_STYLE = {"import": "solid", "forwarder": "bold", "delay": "dashed", "dynamic": "dotted"}


def render(product: Report | Applications, options: RenderOptions) -> str:
    """One ``digraph``, with several applications a cluster for each; Windows' modules only with ``verbose``."""
    name = dot_string(product.target)
    lines = [
        f"digraph {name} {{",
        "  rankdir=LR;",
        '  node [shape=box, style="filled,rounded", fontname="sans-serif"];',
    ]
    if isinstance(product, Report):
        lines += _body(product, options.verbose, "")
    else:
        for number, report in enumerate(product.applications, 1):
            # Graphviz draws a frame around a subgraph whose name starts with "cluster".
            lines.append(f"  subgraph cluster_{number} {{")
            lines += [f"  {line}" for line in _body(report, options.verbose, f"{number}/")]
            lines.append("  }")
    return "\n".join([*lines, "}"]) + "\n"


def _body(report: Report, system: bool, prefix: str) -> list[str]:
    """Label, nodes and edges; ids start with ``prefix``, since two applications may have modules of one name."""
    seen = graphview.build(report, system=system)
    stack = report.stacks[0].id if report.stacks else None
    verdicts = "; ".join(f"{view.VERDICT_WORDS[s.verdict]} on {view.stack_label(s)}" for s in report.stacks)
    findings: dict[str | None, list[str]] = {}
    for row in view.merged(report):
        findings.setdefault(row.finding.module, []).append(f"{view.severity_word(row.finding)} {row.finding.id}")
    names = {node.name for node in seen.nodes}
    unplaced = [text for module, texts in findings.items() if module not in names for text in texts]
    lines = [f"  label={dot_string(' | '.join([f'{report.target}: {verdicts}', *unplaced]))};"]
    for node in seen.nodes:
        role = node.role(stack)
        shown = dot_string(node.name if node.kind == "entry" else f"{node.name} ({role})")
        extra = f", tooltip={dot_string('; '.join(findings[node.name]))}" if node.name in findings else ""
        border = ', color="#b42318", penwidth=2' if node.severity == "blocker" else ""
        fill = _FILL.get(role, "#ffffff")
        lines.append(f'  {dot_string(prefix + node.name)} [label={shown}, fillcolor="{fill}"{border}{extra}];')
    for edge in seen.edges:
        label = f", label={dot_string(view.plural(len(edge.functions), 'function'))}" if edge.functions else ""
        kinds = visible("+".join(edge.kinds))
        style = f"style={_STYLE[edge.kinds[0]]}, tooltip={dot_string(kinds)}{label}"
        lines.append(f"  {dot_string(prefix + edge.source)} -> {dot_string(prefix + edge.target)} [{style}];")
    return lines
