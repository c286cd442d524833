"""The dependency graph as Mermaid text, which GitHub draws inside Markdown."""

from __future__ import annotations

from zcheck.model.report import Applications, Report
from zcheck.render import graphview, view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import mermaid_text

# GitHub refuses Mermaid sources above 50,000 characters and slows down far below; Mermaid itself stops at 500 edges.
MAX_NODES, MAX_EDGES = 120, 240
MAX_PARTS = 40
"""applications drawn in one graph, which share its nodes and edges"""
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
    """One ``graph``; with several applications a ``subgraph`` for each, as a stream of graphs is no diagram."""
    if isinstance(product, Report):
        return graph(product)
    reports = product.applications
    share = len(reports[:MAX_PARTS]) or 1
    lines = ["graph LR", *(f"  {line}" for report in reports for line in comments(report))]
    roles: set[str] = set()
    for number, report in enumerate(reports[:MAX_PARTS], 1):
        seen = graphview.build(report, system=False)
        part, used = body(report, seen, max(4, MAX_NODES // share), max(6, MAX_EDGES // share), f"a{number}")
        lines.append(f"  subgraph a{number}[{mermaid_text(report.target)}]")
        lines += [f"  {line}" for line in part or [f"  a{number}n0[{mermaid_text(report.target)}]"]]
        lines.append("  end")
        roles |= used
    if len(reports) > MAX_PARTS:
        lines.append(f"  cut[{mermaid_text(f'{len(reports) - MAX_PARTS} more applications not drawn')}]")
    return "\n".join([*lines, *classes(roles)]) + "\n"


def graph(report: Report, max_nodes: int = MAX_NODES) -> str:
    """The graph of one report, Windows' own modules left out, cut with a note where it is too big to draw.

    Findings stand as comments in front, so that the text carries all that the picture cannot.
    """
    part, roles = body(report, graphview.build(report, system=False), max_nodes)
    return "\n".join(["graph LR", *("  " + line for line in comments(report)), *part, *classes(roles)]) + "\n"


def comments(report: Report) -> list[str]:
    """Target, verdicts and findings, a comment each."""
    lines = [f"%% {_comment(report.target)}"]
    for stack in report.stacks:
        lines.append(f"%% {_comment(view.VERDICT_WORDS[stack.verdict])} on {_comment(view.stack_label(stack))}")
    for row in view.merged(report):
        place = _comment(row.finding.module or "")
        lines.append(f"%% {view.severity_word(row.finding)} {_comment(row.finding.id)} {place}".rstrip())
    return lines


def body(
    report: Report, seen: graphview.View, max_nodes: int, max_edges: int = MAX_EDGES, prefix: str = ""
) -> tuple[list[str], set[str]]:
    """Node and edge lines, and the roles that they name; ids start with ``prefix``, so that graphs can be joined."""
    stack = report.stacks[0].id if report.stacks else None
    nodes = seen.nodes[:max_nodes]
    number = {node.name: f"{prefix}n{i}" for i, node in enumerate(nodes)}
    edges = [edge for edge in seen.edges if edge.source in number and edge.target in number][:max_edges]
    lines = []
    for node in nodes:
        role = node.role(stack)
        label = mermaid_text(node.name if node.kind == "entry" else f"{node.name} / {role}")
        lines.append(f"  {number[node.name]}[{label}]:::{role.replace('-', '_')}")
    lines += [f"  {number[e.source]} {_ARROWS[e.kinds[0]]} {number[e.target]}" for e in edges]
    if len(nodes) < len(seen.nodes):
        lines.append(f"  {prefix}cut[{mermaid_text(f'{len(seen.nodes) - len(nodes)} more modules not drawn')}]")
    return lines, {node.role(stack) for node in nodes}


def classes(roles: set[str]) -> list[str]:
    """How the roles look."""
    return [f"  classDef {role.replace('-', '_')} {_CLASSES[role]}" for role in sorted(roles) if role in _CLASSES]


def _comment(text: str) -> str:
    # A comment ends with its line; a directive would start with %%{.
    return mermaid_text(text)[1:-1]
