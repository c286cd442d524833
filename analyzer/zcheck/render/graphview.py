"""The dependency graph as the formats draw it: nodes with depth and state, edges joined by pair."""

from __future__ import annotations

from collections import deque

from zcheck.model.base import Record
from zcheck.model.finding import SEVERITIES
from zcheck.model.graph import EdgeKind
from zcheck.model.report import EdgeReport, ModuleReport, Report

KIND_WORDS: dict[EdgeKind, str] = {
    "import": "import",
    "delay": "delay-load",
    "dynamic": "by name",
    "forwarder": "forwarder",
}
_KIND_ORDER: tuple[EdgeKind, ...] = ("import", "forwarder", "delay", "dynamic")


class ViewNode(Record, frozen=True):
    """A module: ``depth`` edges away from an entry (unreached ones one layer below the deepest)."""

    name: str
    depth: int
    roles: dict[str, str]
    kind: str
    severity: str | None = None

    def role(self, stack_id: str | None) -> str:
        """Who answers to the module on that stack."""
        if stack_id is not None and stack_id in self.roles:
            return self.roles[stack_id]
        return next(iter(self.roles.values()), "missing")


class ViewEdge(Record, frozen=True):
    """All edges between two modules."""

    source: str
    target: str
    kinds: tuple[EdgeKind, ...]
    functions: tuple[str, ...]
    resolved_by: str
    places: tuple[str, ...]


class View(Record, frozen=True):
    """Nodes by depth and name, edges by source and target, entry names."""

    nodes: tuple[ViewNode, ...]
    edges: tuple[ViewEdge, ...]
    roots: tuple[str, ...]

    def index(self) -> dict[str, ViewNode]:
        """Nodes by name."""
        return {node.name: node for node in self.nodes}

    def children(self) -> dict[str, list[ViewEdge]]:
        """Edges by source."""
        out: dict[str, list[ViewEdge]] = {}
        for edge in self.edges:
            out.setdefault(edge.source, []).append(edge)
        return out


def _key(module: ModuleReport, used: set[str]) -> str:
    # An edge names a module by its path where names repeat.
    return module.path if module.path and module.path in used else module.name


def build(report: Report, system: bool = True) -> View:
    """The view of a report's graph; ``system`` false leaves Windows' own modules out."""
    named = {name for edge in report.edges for name in (edge.source, edge.target)}
    modules = {_key(module, named): module for module in report.modules}
    hidden = set() if system else {k for k, m in modules.items() if m.role and set(m.role.values()) == {"system"}}
    names = sorted((named | set(modules)) - hidden)
    joined: dict[tuple[str, str], list[EdgeReport]] = {}
    for edge in report.edges:
        if edge.source not in hidden and edge.target not in hidden:
            joined.setdefault((edge.source, edge.target), []).append(edge)
    edges = tuple(_join(pair, group) for pair, group in sorted(joined.items()))
    roots = _roots(report, names, edges)
    depth = _depths(roots, edges)
    below = max(depth.values(), default=0) + 1
    worst = _severities(report)
    nodes = []
    for name in names:
        module = modules.get(name)
        nodes.append(
            ViewNode(
                name=name,
                depth=depth.get(name, below),
                roles=dict(module.role) if module else {},
                kind=module.kind if module else "module",
                severity=worst.get(name) or (worst.get(module.name) if module else None),
            )
        )
    return View(tuple(sorted(nodes, key=lambda n: (n.depth, n.name.lower(), n.name))), edges, roots)


def _join(pair: tuple[str, str], group: list[EdgeReport]) -> ViewEdge:
    kinds = {edge.kind for edge in group}
    functions = dict.fromkeys(name for edge in group for name in edge.functions)
    places = dict.fromkeys(edge.place for edge in group if edge.place)
    rule = next((edge.resolved_by for edge in group if edge.resolved_by), "")
    return ViewEdge(
        pair[0], pair[1], tuple(k for k in _KIND_ORDER if k in kinds), tuple(functions), rule, tuple(places)
    )


def _roots(report: Report, names: list[str], edges: tuple[ViewEdge, ...]) -> tuple[str, ...]:
    entries = set(report.entries) | {entry.replace("\\", "/").rsplit("/", 1)[-1] for entry in report.entries}
    found = tuple(name for name in names if name in entries)
    if found:
        return found
    targets = {edge.target for edge in edges}
    return tuple(name for name in names if name not in targets) or tuple(names[:1])


def _depths(roots: tuple[str, ...], edges: tuple[ViewEdge, ...]) -> dict[str, int]:
    following: dict[str, list[str]] = {}
    for edge in edges:
        following.setdefault(edge.source, []).append(edge.target)
    depth = dict.fromkeys(roots, 0)
    queue = deque(roots)
    while queue:
        name = queue.popleft()
        for target in following.get(name, ()):
            if target not in depth:
                depth[target] = depth[name] + 1
                queue.append(target)
    return depth


def _severities(report: Report) -> dict[str, str]:
    worst: dict[str, str] = {}
    for stack in report.stacks:
        for finding in stack.findings:
            module = finding.module
            if module and SEVERITIES.index(finding.severity) > SEVERITIES.index(worst.get(module, "note")):
                worst[module] = finding.severity
    return worst


class TreeLine(Record, frozen=True):
    """A line of the dependency tree; ``branches``: for each level whether more siblings follow."""

    branches: tuple[bool, ...]
    node: ViewNode
    edge: ViewEdge | None
    again: bool = False
    """already shown with its own dependencies further up"""


def tree(view: View, limit: int = 5_000) -> tuple[TreeLine, ...]:
    """The graph as a tree from the entries, each module opened once, at most ``limit`` lines."""
    index, children = view.index(), view.children()
    lines: list[TreeLine] = []
    opened: set[str] = set()
    stack: list[tuple[str, ViewEdge | None, tuple[bool, ...]]] = [(root, None, ()) for root in reversed(view.roots)]
    while stack and len(lines) < limit:
        name, edge, branches = stack.pop()
        below = children.get(name, [])
        again = name in opened and bool(below)
        lines.append(TreeLine(branches, index[name], edge, again))
        if name in opened:
            continue
        opened.add(name)
        for position in range(len(below) - 1, -1, -1):
            stack.append((below[position].target, below[position], (*branches, position < len(below) - 1)))
    return tuple(lines)
