"""Read one entry of a bundle: modules as far as edges lead, the names they load at run time, their device code."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from zcheck.cli.data import coverage, name_lookups, windows_dlls
from zcheck.cli.hidden import HiddenReader, archive_items, linked_runtime
from zcheck.cli.unreached import CudaUsers
from zcheck.coverage import runtime_start
from zcheck.errors import UsageError
from zcheck.model.base import Skipped
from zcheck.model.bundle import Bundle
from zcheck.model.evidence import Evidence, FileFact, Item, Limitation, OwnPath, RecordedRun, Use
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Graph
from zcheck.model.report import DeviceCodeReport
from zcheck.resolve import ExportTables

if TYPE_CHECKING:
    from zcheck.cli.content import ContentReader
    from zcheck.cli.device import DeviceReader
    from zcheck.cli.pipeline import Reader
    from zcheck.model.device_code import DeviceCodeFacts
    from zcheck.model.hidden import HiddenFacts
    from zcheck.model.names import NameLookups

_AMD_NAME = re.compile(r"rocm|hip|vulkan|opencl|directml|dml", re.I)
_VARIANTS_READ = 16
_CHILDREN_READ = 16
_NAMED = 3
"""libraries named in one sentence"""


@dataclass
class Analysis:
    """What was read about one entry, before any stack is looked at. ``facts`` is keyed by node id."""

    entry: str
    evidence: Evidence
    graph: Graph | None = None
    facts: dict[str, PeFacts] = field(default_factory=dict)
    root: Path | None = None
    skipped: tuple[Skipped, ...] = ()
    device_code: tuple[DeviceCodeReport, ...] = ()
    hashes: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    """what the report takes for granted because of how this program was read"""


def _read(facts: Mapping[str, PeFacts | None]) -> dict[str, PeFacts]:
    """The files that could be read."""
    return {path: read for path, read in facts.items() if read is not None}


def _not_reached(name: str, beside: Sequence[str]) -> list[Limitation]:
    if not beside:
        return []
    more = f" and {len(beside) - _NAMED} more use" if len(beside) > _NAMED else " uses" if len(beside) == 1 else " use"
    return [Limitation("not-reached", name, f"{', '.join(beside[:_NAMED])}{more} CUDA")]


def is_cuda(dll: str) -> bool:
    """True when a DLL name stands for a CUDA library."""
    return coverage().library_of(dll) is not None


def recorded(path: Path) -> tuple[RecordedRun, ...]:
    """Earlier runs of this very file that ``zcheck run --record`` kept; it is hashed only where any run is kept."""
    from zcheck.launch.records import default_data_dir, recorded_runs

    try:
        data = default_data_dir()
    except UsageError:  # a user without a home folder has no records
        return ()
    if not (data / "records").is_dir():
        return ()
    from zcheck.parse.pe import sha256

    try:
        return recorded_runs(sha256(path), data)
    except OSError:
        return ()


class EntryReading:
    """The readers of one run, applied to entries one after another; each file is read once."""

    def __init__(
        self, bundle: Bundle, reader: Reader, device: DeviceReader, hidden: HiddenReader, content: ContentReader
    ) -> None:
        """``bundle`` gives the root that paths are relative to; ``content`` reads its models and scripts."""
        self._bundle = bundle
        self._root = Path(bundle.root)
        self._reader = reader
        self._device = device
        self._hidden = hidden
        self._content = content
        self._tables = ExportTables()
        self._cuda_users = CudaUsers(reader)

    def analyse(self, entry: str) -> Analysis:
        """Everything that can be read about an entry whose facts can be read."""
        from zcheck.collect import collect
        from zcheck.collect.hidden import items as hidden_items
        from zcheck.resolve import Dynamic, Resolver

        resolver = Resolver(self._bundle, entry, windows_dlls(), tables=self._tables)
        code: dict[str, DeviceCodeFacts | None] = {}
        names: dict[str, HiddenFacts] = {}
        while self._resolve(resolver):
            pass
        for edge in self._content.edges(entry, _read(resolver.facts)):
            resolver.add_dynamic(Dynamic(*edge))
        while self._resolve(resolver) or self._follow(resolver, entry, code, names):
            pass
        graph = resolver.graph()
        facts = _read(resolver.facts)
        known = collect(graph, facts, name_lookups())
        extra: list[Item] = [*self._runtime_itself(entry, facts), *self._itself(entry), *self._variants(facts)]
        extra += self._content.evidence(entry, facts)
        reports: list[DeviceCodeReport] = []
        for file in (item for item in known.items if isinstance(item, FileFact)):
            path = file.path or file.name
            if path in names:
                extra += hidden_items(file.name, file.role, names[path], file.load)
                extra += linked_runtime(names[path], file.name)
            found = self._device.found(file.name, code.get(path), self._root / path)
            if found is not None:
                extra += found.items
                reports += found.reports
        extra += recorded(self._root / entry)
        if entry in facts:
            extra += archive_items(self._root / entry, known.target, facts[entry])
        evidence = collect(graph, facts, name_lookups(), extra)
        beside = self._beside(entry, facts)
        if not any(is_cuda(use.dll) for use in evidence.uses()):
            more = self._children(entry, known.target, names) or _not_reached(known.target, beside)
            evidence = collect(graph, facts, name_lookups(), [*extra, *more])
            beside = ()
        return Analysis(
            entry=entry,
            evidence=evidence,
            device_code=tuple(reports),
            graph=graph,
            facts=facts,
            root=self._root,
            notes=self._alternatives(entry),
            skipped=(
                *self._bundle.skipped,
                *self._reader.skipped,
                *self._device.skipped,
                *self._content.skipped,
                *(Skipped(path, "uses CUDA, and nothing was seen to load it; check it by itself") for path in beside),
            ),
        )

    def prefetch(self, path: str, facts: PeFacts, lookups: NameLookups) -> None:
        """Read what ``analyse`` will ask of one module, so that the cache has it."""
        name = path.rpartition("/")[2]
        if lookups.library_of(name) is not None:
            return
        code = self._device.facts(self._root / path, path)
        self._device.found(name, code, self._root / path)
        if lookups.framework_of(name) is None:
            self._hidden.read(self._root / path, facts, code.regions if code else ())

    def _resolve(self, resolver: object) -> bool:
        """Parse what the resolver asks for; True when there was anything."""
        from zcheck.resolve import Resolver

        assert isinstance(resolver, Resolver)
        paths = resolver.needed()
        for path in paths:
            resolver.add(path, self._reader.read(path))
        return bool(paths)

    def _follow(
        self,
        resolver: object,
        entry: str,
        code: dict[str, DeviceCodeFacts | None],
        names: dict[str, HiddenFacts],
    ) -> bool:
        """Read device code and names of modules not looked into yet, and add the edges that the names make.

        NVIDIA's own libraries are left alone: a release replaces them, or the tables describe them. A framework's names
        say no more than its imports, which are everything.
        """
        from zcheck.collect.hidden import edges
        from zcheck.resolve import Dynamic, Resolver

        assert isinstance(resolver, Resolver)
        fresh = [path for path, facts in resolver.facts.items() if facts is not None and path not in code]
        for path in fresh:
            facts = resolver.facts[path]
            name = path.rpartition("/")[2]
            assert facts is not None
            lookups = name_lookups()
            if (path != entry and lookups.library_of(name) is not None) or Path(path).is_absolute():
                code[path] = None
                continue
            code[path] = self._device.facts(self._root / path, path)
            if lookups.framework_of(name) is not None:
                continue
            regions = code[path]
            names[path] = self._hidden.read(self._root / path, facts, regions.regions if regions else ())
            for edge in edges(path, names[path]):
                if "*" not in edge.dll:
                    resolver.add_dynamic(Dynamic(path, edge.dll, edge.functions, edge.confidence, edge.place))
        return bool(fresh)

    def _alternatives(self, entry: str) -> tuple[str, ...]:
        """A sentence where the entry is one of several builds of a library, of which a program loads one."""
        from zcheck.parse.names_variants import variants

        notes = []
        for group in variants(file.path for file in self._bundle.files if file.kind == "pe"):
            paths = [path for _, path in group.choices]
            if entry in paths:
                others = ", ".join(told_apart(paths, entry))
                notes.append(f"It is one of several alternatives, of which a program loads one; the others: {others}.")
        return tuple(notes)

    def _children(self, entry: str, name: str, names: Mapping[str, HiddenFacts]) -> list[Limitation]:
        """For an entry without CUDA of its own: programs of the bundle that it starts and that use CUDA."""
        from zcheck.collect.hidden import child_programs

        programs = [
            file.path for file in self._bundle.files if file.path.lower().endswith(".exe") and file.path != entry
        ]
        started = dict.fromkeys(path for found in names.values() for path in child_programs(found, programs))
        using = []
        for path in list(started)[:_CHILDREN_READ]:
            facts = self._reader.read(path)
            if facts is None:
                continue
            hidden = self._hidden.read(self._root / path, facts, ())
            if hidden.dlls or any(is_cuda(item.dll) for item in facts.imports):
                using.append(path)
        if not using:
            return []
        note = f"it starts {', '.join(using)}, which uses CUDA; run zcheck on that"
        return [Limitation("script-launcher", name, note)]

    def _beside(self, entry: str, reached: Mapping[str, PeFacts]) -> Sequence[str]:
        """For a program: libraries in its folder and below that use CUDA and that it was not seen to load."""
        if not entry.lower().endswith(".exe"):
            return ()
        return self._cuda_users.beside(self._content.below(entry), reached)

    def _itself(self, entry: str) -> list[Limitation]:
        """For an entry that is a CUDA library: it says nothing about what a program needs."""
        name = entry.rpartition("/")[2]
        library = coverage().library_of(name)
        if library is None:
            return []
        return [Limitation("vendor-library", name, f"a CUDA library itself ({library})")]

    def _variants(self, reached: Mapping[str, PeFacts]) -> list[OwnPath]:
        """Own AMD paths among the bundle's files that this entry does not reach and whose names promise one."""
        from zcheck.collect import own_path_variants

        paths = [
            file.path
            for file in self._bundle.files
            if file.kind == "pe" and file.path not in reached and _AMD_NAME.search(file.path.rpartition("/")[2])
        ][:_VARIANTS_READ]
        facts = {path: read for path in paths if (read := self._reader.read(path)) is not None}
        return own_path_variants(facts, name_lookups())

    @staticmethod
    def _runtime_itself(entry: str, facts: Mapping[str, PeFacts]) -> list[Use]:
        """For an entry that is NVIDIA's runtime: the driver functions that its every start calls, as measured."""
        name = entry.rpartition("/")[2]
        if coverage().library_of(name) != "cudart":
            return []
        version = facts[entry].version
        return runtime_start(
            coverage(), name, version.file_version if version else "", version.description if version else ""
        )


def told_apart(paths: Sequence[str], entry: str) -> list[str]:
    """The names of ``paths`` but for ``entry``; the whole path where several files have the same name."""
    names = [path.rpartition("/")[2] for path in paths]
    return [path if names.count(name) > 1 else name for path, name in zip(paths, names, strict=True) if path != entry]
