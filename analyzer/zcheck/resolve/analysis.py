"""Questions to a finished graph."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING

from zcheck.model.bundle import Bundle
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Edge, EdgeKind, Graph
from zcheck.resolve.build import Dynamic
from zcheck.resolve.names import PYTHON, module_name, split_forwarder

if TYPE_CHECKING:
    from networkx import MultiDiGraph

LOAD_TIME: tuple[EdgeKind, ...] = ("import", "forwarder")


def closure(graph: Graph, node_id: str, kinds: tuple[EdgeKind, ...] = LOAD_TIME) -> frozenset[str]:
    """Ids of all modules that follow from a module (itself included) over edges of some kinds.

    With the default kinds: what the loader has to find so that this module loads. Forwarders that nobody was seen to
    import (confidence ``low``) do not count then.
    """
    targets = _targets(graph, kinds)
    seen = {node_id}
    queue = deque([node_id])
    while queue:
        for edge in targets.get(queue.popleft(), ()):
            if edge.target not in seen:
                seen.add(edge.target)
                queue.append(edge.target)
    return frozenset(seen)


def chain(graph: Graph, node_id: str) -> tuple[Edge, ...]:
    """A shortest way from the entry to a module, load-time edges preferred; empty when there is none."""
    for kinds in (LOAD_TIME, ("import", "forwarder", "delay", "dynamic")):
        targets = _targets(graph, kinds)
        came: dict[str, Edge] = {}
        queue = deque([graph.entry])
        while queue:
            for edge in targets.get(queue.popleft(), ()):
                if edge.target not in came and edge.target != graph.entry:
                    came[edge.target] = edge
                    queue.append(edge.target)
        way: list[Edge] = []
        at = node_id
        while at in came:
            way.append(came[at])
            at = came[at].source
        if way:
            return tuple(reversed(way))
    return ()


def cycles(graph: Graph) -> tuple[tuple[str, ...], ...]:
    """Groups of modules that need one another at load time, each sorted (strongly connected, by networkx)."""
    import networkx as nx

    found = nx.strongly_connected_components(networkx_graph(graph, LOAD_TIME))
    return tuple(sorted(tuple(sorted(group)) for group in found if len(group) > 1))


def networkx_graph(graph: Graph, kinds: tuple[EdgeKind, ...] | None = None) -> MultiDiGraph[str]:
    """The graph for networkx: node attribute ``node``, edge attribute ``edge`` hold the records."""
    import networkx as nx

    result: MultiDiGraph[str] = nx.MultiDiGraph(entry=graph.entry)
    for node in graph.nodes:
        result.add_node(node.id, node=node)
    for edge in graph.edges:
        if kinds is None or edge.kind in kinds:
            result.add_edge(edge.source, edge.target, edge=edge)
    return result


def top_modules(bundle: Bundle, facts: Mapping[str, PeFacts]) -> tuple[str, ...]:
    """Entries that no other entry of the bundle imports, delay-imports or forwards to, in the bundle's order.

    For a folder of libraries without a program: a DLL that only serves others is judged with them. Two that need one
    another both stay.
    """
    users: dict[str, set[str]] = {}
    for path, read in facts.items():
        names = {module_name(item.dll) for item in read.imports}
        names |= {module_name(split_forwarder(e.forwarder)[0]) for e in read.exports if e.forwarder}
        for name in names:
            users.setdefault(name, set()).add(path)
    own = {path: path.rpartition("/")[2].lower() for path in bundle.entries}
    top: list[str] = []
    for path, name in own.items():
        others = {user for user in users.get(name, ()) if own.get(user, user) != name}
        mutual = {module_name(item.dll) for item in facts[path].imports} if path in facts else set()
        if not {user for user in others if user.rpartition("/")[2].lower() not in mutual}:
            top.append(path)
    return tuple(top)


def python_imports(bundle: Bundle, entry: str) -> tuple[Dynamic, ...]:
    """For an entry that is a Python interpreter: the extension modules of its environment, as loads that may happen.

    Which of them a program imports is not known here, hence confidence ``low``; for any other entry there are none.
    """
    folder, _, name = entry.rpartition("/")
    if not PYTHON.fullmatch(name):
        return ()
    up = "..\\" * (folder.count("/") + 1 if folder else 0)
    return tuple(
        Dynamic(entry, up + file.path.replace("/", "\\"), (), "low", "extension module of the environment")
        for file in bundle.files
        if file.kind == "pe" and file.path.lower().endswith(".pyd")
    )


def _targets(graph: Graph, kinds: tuple[EdgeKind, ...]) -> dict[str, list[Edge]]:
    lazy = "delay" in kinds or "dynamic" in kinds
    targets: dict[str, list[Edge]] = {}
    for edge in graph.edges:
        if edge.kind in kinds and (lazy or edge.kind != "forwarder" or edge.confidence != "low"):
            targets.setdefault(edge.source, []).append(edge)
    return targets
