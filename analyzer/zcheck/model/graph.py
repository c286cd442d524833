"""The dependency graph that resolve/ makes, as plain frozen data (for algorithms, networkx is built from it)."""

from __future__ import annotations

from typing import Literal

from zcheck.model.base import Confidence, Record

Origin = Literal["bundle", "system", "api-set", "path", "missing", "mismatch"]
EdgeKind = Literal["import", "delay", "dynamic", "forwarder"]
LoadTime = Literal["start", "later", "unreached"]


class Node(Record, frozen=True):
    """A module as the Windows loader sees it.

    ``id`` is the path relative to the bundle root for files of the bundle, else the lower-case DLL name.
    ``load``: ``start`` when it is in the load-time closure of the entry (imports and forwarders only), ``later`` when
    only delay, dynamic or unknown ways lead to it, ``unreached`` when no edge of this entry does.
    """

    id: str
    name: str
    origin: Origin
    load: LoadTime = "unreached"
    path: str | None = None
    note: str = ""
    """what else is known of the origin: ``Microsoft Visual C++ redistributable …``, ``the host program`` …"""


class Edge(Record, frozen=True):
    """``source`` needs ``target`` (node ids); ``functions`` are names or ``#ordinal`` in table order.

    ``resolved_by`` names the loader rule: api-set, known-dll, application-directory, module-directory, dll-directory,
    system32, current-directory, path, side-by-side, not-found, machine-mismatch.
    """

    source: str
    target: str
    kind: EdgeKind
    dll: str
    """the DLL name as written in the importing file"""
    functions: tuple[str, ...] = ()
    resolved_by: str = ""
    confidence: Confidence = "high"
    place: str = ""
    """where it was read: ``import table``, ``delay-import table``, ``.rdata+0x1f20 (UTF-16)`` …"""
    unresolved: tuple[str, ...] = ()
    """functions that the found target does not export (bundle targets only: system exports are not tabled)"""


class Graph(Record, frozen=True):
    """Modules and edges of one entry, each sorted; ``entry`` is a node id."""

    entry: str
    nodes: tuple[Node, ...] = ()
    edges: tuple[Edge, ...] = ()

    def node(self, node_id: str) -> Node:
        """The node of that id; raises KeyError."""
        for node in self.nodes:
            if node.id == node_id:
                return node
        raise KeyError(node_id)
