"""The dependency graph as Mermaid text, which GitHub draws inside Markdown."""

from __future__ import annotations

from zcheck.model.report import Applications, Report
from zcheck.render import graphview, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import mermaid_text

# GitHub refuses Mermaid sources above 50,000 characters and slows down far below; Mermaid itself stops at 500 edges.
MAX_NODES, MAX_EDGES = 120, 240
_ARROWS = {"import": "-->", "forwarder": "-->", "delay": "-.->", "dynamic": "-.->"}
_CLASSES = {
    "replaced": "fill:#d9f2e3,stroke:#1b7f4b,color:#10291c",
    "passed-through": "fill:#fdf0d0,stroke:#9a6700,color:#33240a",
    "absent": "fill:#ffe0dd,stroke:#b42318,color:#3d0f0a",
    "missing": "fill:#ffe0dd,stroke:#b42318,color:#3d0f0a,stroke-dasharray:4 3",
    "system": "fill:#eceff3,stroke:#6b7480,color:#1c2128",
    "bundle": "fill:#dfeaff,stroke:#2458b3,color:#0d2145",
}


def render(product: Report | Applications, options: RenderOptions) -> str:
    """One ``graph`` per application; with several, each under a comment with its name and findings."""
    return "\n".join(graph(report) for report in view.reports(product))


def graph(report: Report, max_nodes: int = MAX_NODES) -> str:
    """The graph of one report, Windows' own modules left out, cut with a note where it is too big to draw.

    Findings stand as comments in front, so that the text carries all that the picture cannot.
    """
    seen = graphview.build(report, system=False)
    lines = [f"%% {_comment(report.target)}"]
    for stack in report.stacks:
        lines.append(f"%% {_comment(view.VERDICT_WORDS[stack.verdict])} on {_comment(view.stack_label(stack))}")
    for row in view.merged(report):
        place = _comment(row.finding.module or "")
        lines.append(f"%% {view.severity_word(row.finding)} {_comment(row.finding.id)} {place}".rstrip())
    return "\n".join(["graph LR", *("  " + line for line in lines), *body(report, seen, max_nodes)]) + "\n"


def body(report: Report, seen: graphview.View, max_nodes: int) -> list[str]:
    """Node, edge and class lines."""
    stack = report.stacks[0].id if report.stacks else None
    nodes = seen.nodes[:max_nodes]
    number = {node.name: f"n{i}" for i, node in enumerate(nodes)}
    edges = [edge for edge in seen.edges if edge.source in number and edge.target in number][:MAX_EDGES]
    lines = []
    for node in nodes:
        role = node.role(stack)
        label = mermaid_text(node.name if node.kind == "entry" else f"{node.name} / {role}")
        lines.append(f"  {number[node.name]}[{label}]:::{role.replace('-', '_')}")
    lines += [f"  {number[e.source]} {_ARROWS[e.kinds[0]]} {number[e.target]}" for e in edges]
    for role in sorted({node.role(stack) for node in nodes}):
        if role in _CLASSES:
            lines.append(f"  classDef {role.replace('-', '_')} {_CLASSES[role]}")
    if len(nodes) < len(seen.nodes):
        lines.append(f"  cut[{mermaid_text(f'{len(seen.nodes) - len(nodes)} more modules not drawn')}]")
    return lines


def _comment(text: str) -> str:
    # A comment ends with its line; a directive would start with %%{.
    return mermaid_text(text)[1:-1]
