"""From the facts of single modules to the graph of one process.

    resolver = Resolver(bundle, entry, windows)
    while paths := resolver.needed():
        for path in paths:
            resolver.add(path, read(path))      # None when the file cannot be read
    graph = resolver.graph()

Nothing is read here; what is asked for is only what the entry can reach. Dynamic edges, found by another stage in
strings or code, go in by ``add_dynamic`` and may make ``needed`` ask for more.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from zcheck.model.base import Confidence
from zcheck.model.bundle import Bundle
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Graph
from zcheck.resolve.build import Build, Dynamic
from zcheck.resolve.exports import ExportTables
from zcheck.resolve.search import Search
from zcheck.resolve.windows import WindowsDlls


class Resolver:
    """Collects facts and makes the graph of one entry. ``path_dirs`` are folders of PATH when a host is known;
    ``system_names`` are further DLLs that the host's System32 holds (a graphics driver's, say)."""

    def __init__(
        self,
        bundle: Bundle,
        entry: str,
        windows: WindowsDlls,
        *,
        path_dirs: Sequence[Path] = (),
        system_names: Iterable[str] = (),
        current_directory: str | None = None,
        extra_edges: Iterable[Dynamic | tuple[str, str, tuple[str, ...], Confidence, str]] = (),
        tables: ExportTables | None = None,
    ) -> None:
        """``tables``: one instance for all entries whose facts are the same objects."""
        self.bundle = bundle
        self.entry = entry
        self.facts: dict[str, PeFacts | None] = {}
        self._search = Search(bundle, entry, windows, path_dirs, system_names, current_directory)
        self._pending: dict[str, None] = {entry: None}
        self._dynamic: dict[str, list[Dynamic]] = {}
        self._tables = tables or ExportTables()
        for edge in extra_edges:
            self.add_dynamic(Dynamic(*edge))

    def needed(self) -> tuple[str, ...]:
        """Files that are reached and have no facts yet: paths relative to the bundle's root, absolute ones of PATH."""
        return tuple(self._pending)

    def add(self, path: str, facts: PeFacts | None) -> None:
        """The facts of a file, None when it cannot be read. Also for files that ``needed`` did not ask for."""
        self._pending.pop(path, None)
        self.facts[path] = facts
        if facts is None:
            return
        if path == self.entry:
            self._search.assemblies = facts.manifest_assemblies
            # Code for any machine gets the system's width: nothing can be called a mismatch.
            self._search.machine = None if facts.any_cpu else facts.machine
        for item in facts.imports:
            self._want(item.dll, path)
        for dll in self._tables.forwarded_to(facts):
            self._want(dll, path)

    def add_dynamic(self, edge: Dynamic) -> None:
        """A DLL that a module loads by name at run time."""
        edges = self._dynamic.setdefault(edge.module, [])
        if edge not in edges:
            edges.append(edge)
            self._want(edge.dll, edge.module)

    def unreached(self) -> tuple[str, ...]:
        """PE files of the bundle that nothing asked for so far, in order."""
        return tuple(
            file.path
            for file in self.bundle.files
            if file.kind == "pe" and file.path not in self.facts and file.path not in self._pending
        )

    def _want(self, dll: str, importer: str) -> None:
        for path in self._search.candidates(dll, importer):
            if path not in self.facts:
                self._pending.setdefault(path)

    def graph(self) -> Graph:
        """The graph as far as facts are known."""
        return Build(self.bundle, self.entry, self._search, self.facts, self._dynamic, self._tables).graph()


def resolve(
    bundle: Bundle,
    entry: str,
    facts: Mapping[str, PeFacts],
    windows: WindowsDlls,
    *,
    path_dirs: Sequence[Path] = (),
    system_names: Iterable[str] = (),
    current_directory: str | None = None,
    extra_edges: Iterable[Dynamic | tuple[str, str, tuple[str, ...], Confidence, str]] = (),
) -> Graph:
    """The graph of one entry from facts that are all there, by bundle path; files without facts stay leaves."""
    resolver = Resolver(
        bundle,
        entry,
        windows,
        path_dirs=path_dirs,
        system_names=system_names,
        current_directory=current_directory,
        extra_edges=extra_edges,
    )
    while paths := resolver.needed():
        for path in paths:
            resolver.add(path, facts.get(path))
    return resolver.graph()
