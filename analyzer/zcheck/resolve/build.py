"""The graph of one process: what the loader resolves at its start, what is loaded later, what nothing leads to."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from zcheck.model.base import CONFIDENCES, Confidence
from zcheck.model.bundle import Bundle
from zcheck.model.facts import Export, ImportedDll, PeFacts
from zcheck.model.graph import Edge, EdgeKind, Graph, LoadTime, Node, Origin
from zcheck.resolve.exports import ExportTables
from zcheck.resolve.names import CUDA_LIKE, module_name, split_forwarder
from zcheck.resolve.search import Found, Search

IMPORT_TABLE, DELAY_TABLE, EXPORT_TABLE = "import table", "delay-import table", "export table"
_READ: tuple[Origin, ...] = ("bundle", "path")


class Dynamic(NamedTuple):
    """A DLL that a module loads by name: ``module`` is a bundle path, ``place`` where that was read."""

    module: str
    dll: str
    functions: tuple[str, ...] = ()
    confidence: Confidence = "medium"
    place: str = ""


class _Wish(NamedTuple):
    """One edge to be made."""

    source: str
    dll: str
    kind: EdgeKind
    functions: tuple[str, ...]
    place: str
    confidence: Confidence = "high"


class Build:
    """One pass over the facts that are known."""

    def __init__(
        self,
        bundle: Bundle,
        entry: str,
        search: Search,
        facts: Mapping[str, PeFacts | None],
        dynamic: Mapping[str, Sequence[Dynamic]],
        tables: ExportTables,
    ) -> None:
        self.bundle = bundle
        self.entry = entry
        self.search = search
        self.facts = facts
        self.dynamic = dynamic
        self.tables = tables
        self.nodes: dict[str, Node] = {}
        self.edges: dict[tuple[str, str, EdgeKind, str, str, Confidence], Edge] = {}
        self.keys: dict[str, str] = {}  # node id -> key of its facts
        self.loaded: dict[str, Found] = {}  # base name -> what the process holds since its start
        self.passed: dict[tuple[str, str], set[str]] = {}  # forwarders in use: (module, DLL) -> functions

    def graph(self) -> Graph:
        """Nodes and edges, each in order."""
        own = Found(self.entry, self.entry.rpartition("/")[2], "bundle", "module-directory")
        self.loaded[own.name.lower()] = own
        self._node(own, "start")
        self._follow([self.entry], "start")
        self._follow(self._all_lazy(list(self.nodes), "later"), "later")
        self._unused_forwarders("later")
        files = [file.path for file in self.bundle.files if file.kind == "pe" and file.path not in self.nodes]
        read = [path for path in files if self.facts.get(path)]
        for path in read:
            self._node(Found(path, path.rpartition("/")[2], "bundle", ""), "unreached")
        self._follow(read, "unreached")
        for path in files:
            if CUDA_LIKE.search(path.rpartition("/")[2]) and not self.search.is_foreign(path):
                self._node(Found(path, path.rpartition("/")[2], "bundle", ""), "unreached")
        return Graph(
            entry=self.entry,
            nodes=tuple(self.nodes[key] for key in sorted(self.nodes)),
            edges=tuple(self.edges[key] for key in sorted(self.edges)),
        )

    def _follow(self, modules: Iterable[str], load: LoadTime) -> None:
        """Follows the tables of modules (node ids) and of all they reach; a process start leaves out lazy edges."""
        queue = deque(modules)
        done: set[str] = set()
        while queue:
            module = queue.popleft()
            if module in done:
                continue
            done.add(module)
            for item in self._imports(module, delay=False):
                queue.extend(self._edge(_Wish(module, item.dll, "import", _names(item), IMPORT_TABLE), load))
            if load != "start":
                queue.extend(self._all_lazy([module], load))

    def _all_lazy(self, modules: Iterable[str], load: LoadTime) -> list[str]:
        """Delay imports and loads by name of some modules; returns the modules reached for the first time."""
        new: list[str] = []
        for module in modules:
            for item in self._imports(module, delay=True):
                new += self._edge(_Wish(module, item.dll, "delay", _names(item), DELAY_TABLE), load)
            for call in self.dynamic.get(self.keys[module], ()):
                wish = _Wish(module, call.dll, "dynamic", tuple(call.functions), call.place, call.confidence)
                new += self._edge(wish, load)
        return new

    def _unused_forwarders(self, load: LoadTime) -> None:
        """Forwarders that nobody was seen to import: only a look-up by name could use them."""
        done: set[str] = set()
        while fresh := [module for module in self.nodes if module not in done]:
            new: list[str] = []
            for module in fresh:
                done.add(module)
                by_dll: dict[str, dict[str, None]] = {}
                facts = self._read(module)
                for export in facts.exports if facts else ():
                    if export.forwarder:
                        dll, function = split_forwarder(export.forwarder)
                        if function not in self.passed.get((module, dll), ()):
                            by_dll.setdefault(dll, {})[function] = None
                for dll, functions in by_dll.items():
                    new += self._edge(_Wish(module, dll, "forwarder", tuple(functions), EXPORT_TABLE, "low"), load)
            self._follow(new, load)

    def _imports(self, module: str, delay: bool) -> list[ImportedDll]:
        facts = self._read(module)
        return [item for item in facts.imports if item.delay is delay] if facts else []

    def _read(self, module: str) -> PeFacts | None:
        return self.facts.get(self.keys[module]) if self.nodes[module].origin in _READ else None

    def _edge(self, first: _Wish, load: LoadTime) -> list[str]:
        """Makes one edge and the forwarder edges that it entails; returns the modules reached for the first time."""
        new: list[str] = []
        wishes = [first]
        while wishes:
            wish = wishes.pop()
            facts = self._read(wish.source)
            found = self._find(wish, load, facts.manifest_assemblies if facts else ())
            target = self._id(found)
            if self._node(found, load):
                new.append(target)
            confidence = min(wish.confidence, found.confidence, key=CONFIDENCES.index)
            key = (wish.source, target, wish.kind, wish.dll, wish.place, confidence)
            known = self.edges.get(key)
            functions = tuple(dict.fromkeys((*(known.functions if known else ()), *wish.functions)))
            self.edges[key] = Edge(
                source=wish.source,
                target=target,
                kind=wish.kind,
                dll=wish.dll,
                functions=functions,
                resolved_by=found.rule,
                confidence=confidence,
                place=wish.place,
                unresolved=self._unresolved(found, functions),
            )
            if wish.confidence != "low" or wish.kind != "forwarder":
                wishes += self._passed_on(found, target, wish.functions)
        return new

    def _passed_on(self, found: Found, target: str, functions: tuple[str, ...]) -> list[_Wish]:
        """Where the target passes a function on, the loader looks for the next DLL at the same moment."""
        if found.origin not in _READ:
            return []
        exports = self.exports(found.key)
        fresh: dict[str, list[str]] = {}
        for function in functions:
            export = exports.get(function)
            if export and export.forwarder:
                dll, name = split_forwarder(export.forwarder)
                seen = self.passed.setdefault((target, dll), set())
                if name not in seen:
                    seen.add(name)
                    fresh.setdefault(dll, []).append(name)
        return [_Wish(target, dll, "forwarder", tuple(names), EXPORT_TABLE) for dll, names in fresh.items()]

    def _find(self, wish: _Wish, load: LoadTime, assemblies: Sequence[str]) -> Found:
        name = module_name(wish.dll)
        # A name that the process holds already is not searched again, from whatever folder it came.
        if name in self.loaded and "\\" not in wish.dll and "/" not in wish.dll:
            held = self.loaded[name]
            if load == "start" or held.origin != "missing":
                return held
        importer = self.keys[wish.source]
        found = self.search.find(wish.dll, importer, self.facts, load == "start", assemblies)
        if load == "start":
            self.loaded.setdefault(name, found)
        return found

    def _id(self, found: Found) -> str:
        return module_name(found.name) if found.origin == "path" else found.key

    def _node(self, found: Found, load: LoadTime) -> bool:
        key = self._id(found)
        if key in self.nodes:
            return False
        self.keys[key] = found.key
        path = found.key if found.origin in ("bundle", "mismatch", "path") else None
        self.nodes[key] = Node(id=key, name=found.name, origin=found.origin, load=load, path=path, note=found.note)
        return True

    def _unresolved(self, found: Found, functions: tuple[str, ...]) -> tuple[str, ...]:
        facts = self.facts.get(found.key)
        if found.origin not in _READ or facts is None or facts.partial:
            return ()
        exports = self.exports(found.key)
        return tuple(name for name in functions if name not in exports)

    def exports(self, key: str) -> Mapping[str, Export]:
        """Exports of a file by name and by ``#ordinal``."""
        facts = self.facts.get(key)
        return self.tables.by_name(facts) if facts else {}


def _names(item: ImportedDll) -> tuple[str, ...]:
    symbols = (symbol.name if symbol.name is not None else f"#{symbol.ordinal}" for symbol in item.symbols)
    return tuple(dict.fromkeys(symbols))
