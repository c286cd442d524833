"""From a path to reports: the stages in order, each handed what the one before it made."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from zcheck import __version__
from zcheck.cli.content import ContentReader
from zcheck.cli.data import coverage, name_lookups, rule_set, windows_dlls
from zcheck.cli.progress import Progress
from zcheck.coverage import runtime_start
from zcheck.errors import InputError
from zcheck.model.base import Skipped
from zcheck.model.bundle import Bundle
from zcheck.model.evidence import Evidence, FileFact, Item, OwnPath, Use
from zcheck.model.facts import PeFacts
from zcheck.model.graph import Graph
from zcheck.model.report import SCHEMA, Applications, DeviceCodeReport, Report
from zcheck.model.stack import Stack

if TYPE_CHECKING:
    from zcheck.cli.device import DeviceReader

_AMD_NAME = re.compile(r"rocm|hip|vulkan|opencl|directml|dml", re.I)
_VARIANTS_READ = 16
_LIBRARIES_READ = 400
"""libraries of a folder without a program that are read to see which only serve others"""


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


class Reader:
    """Reads each PE file once, for however many entries."""

    def __init__(self, bundle: Bundle, progress: Progress) -> None:
        """``bundle`` gives the root that paths are relative to."""
        self._root = Path(bundle.root)
        self._progress = progress
        self._facts: dict[str, PeFacts | None] = {}
        self.skipped: list[Skipped] = []

    def read(self, path: str, must: bool = False) -> PeFacts | None:
        """The facts of a bundle file; None (noted as skipped) when it is no PE file, unless it ``must`` be one."""
        if path not in self._facts:
            from zcheck.parse.pe import read_pe

            self._progress.step(path)
            try:
                self._facts[path] = read_pe(self._root / path)
            except InputError as error:
                if must:
                    raise
                self._facts[path] = None
                self.skipped.append(Skipped(path=path, reason=error.message))
        return self._facts[path]


def analyse(target: Path, stacks: Sequence[Stack], progress: Progress) -> tuple[Bundle, list[Analysis]]:
    """The bundle of ``target`` and an analysis of each of its entries; raises InputError and UsageError.

    Of ``stacks`` only the releases are looked at: the replay of device code is evidence per release.
    """
    from zcheck.cli.device import DeviceReader
    from zcheck.discover import discover

    bundle = discover(target)
    reader = Reader(bundle, progress)
    entries = _entries(bundle, reader)
    alone = len(entries) == 1
    content = ContentReader(bundle, [stack.zluda for stack in stacks])
    found = []
    with DeviceReader([stack.zluda for stack in stacks], next((s.gpu for s in stacks if s.gpu), None)) as device:
        for entry in entries:
            if reader.read(entry, must=alone) is not None:
                found.append(_analyse_entry(bundle, entry, reader, device, content))
    if not found:
        raise InputError(reader.skipped[0].reason if reader.skipped else f"{target.name}: nothing to judge")
    return bundle, found


def _entries(bundle: Bundle, reader: Reader) -> Sequence[str]:
    """The entries to judge: of a folder with libraries only, those that do not merely serve others."""
    if len(bundle.entries) < 2 or any(entry.lower().endswith(".exe") for entry in bundle.entries):
        return bundle.entries
    if len(bundle.entries) > _LIBRARIES_READ:
        return bundle.entries
    from zcheck.resolve import top_modules

    read = {entry: facts for entry in bundle.entries if (facts := reader.read(entry)) is not None}
    return top_modules(bundle, read) or bundle.entries


def _analyse_entry(
    bundle: Bundle, entry: str, reader: Reader, device: DeviceReader, content: ContentReader
) -> Analysis:
    from zcheck.cli.device import wanted
    from zcheck.collect import collect
    from zcheck.resolve import Dynamic, Resolver

    resolver = Resolver(bundle, entry, windows_dlls())
    while paths := resolver.needed():
        for path in paths:
            resolver.add(path, reader.read(path))
    for edge in content.edges(entry, {path: read for path, read in resolver.facts.items() if read is not None}):
        resolver.add_dynamic(Dynamic(*edge))
    while paths := resolver.needed():
        for path in paths:
            resolver.add(path, reader.read(path))
    graph = resolver.graph()
    facts = {path: read for path, read in resolver.facts.items() if read is not None}
    known = collect(graph, facts, name_lookups())
    extra: list[Item] = [*_runtime_start(entry, facts), *_variants(bundle, facts, reader)]
    extra += content.evidence(entry, facts)
    reports: list[DeviceCodeReport] = []
    for file in wanted(item for item in known.items if isinstance(item, FileFact)):
        found = device.read(Path(bundle.root) / (file.path or file.name), file.name)
        if found is not None:
            extra += found.items
            reports += found.reports
    evidence = collect(graph, facts, name_lookups(), extra)
    return Analysis(
        entry=entry,
        evidence=evidence,
        device_code=tuple(reports),
        graph=graph,
        facts=facts,
        root=Path(bundle.root),
        skipped=(*bundle.skipped, *reader.skipped, *device.skipped, *content.skipped),
    )


def _variants(bundle: Bundle, reached: Mapping[str, PeFacts], reader: Reader) -> list[OwnPath]:
    """Own AMD paths among the bundle's files that this entry does not reach and whose names promise one."""
    from zcheck.collect import own_path_variants

    paths = [
        file.path
        for file in bundle.files
        if file.kind == "pe" and file.path not in reached and _AMD_NAME.search(file.path.rpartition("/")[2])
    ][:_VARIANTS_READ]
    facts = {path: read for path in paths if (read := reader.read(path)) is not None}
    return own_path_variants(facts, name_lookups())


def _runtime_start(entry: str, facts: Mapping[str, PeFacts]) -> list[Use]:
    """For an entry that is NVIDIA's runtime itself: the driver functions that its every start calls, as measured."""
    name = Path(entry).name
    if coverage().library_of(name) != "cudart":
        return []
    version = facts[entry].version
    return runtime_start(
        coverage(), name, version.file_version if version else "", version.description if version else ""
    )


def judge_analysis(
    analysis: Analysis,
    stacks: Iterable[Stack],
    target: str,
    host: Mapping[str, object] | None = None,
    assumptions: Sequence[str] = (),
) -> Report:
    """The report on one analysed entry for every stack."""
    from zcheck.coverage import answer
    from zcheck.judge import Judged, build_report, judge
    from zcheck.match import build_context, match

    database, rules = coverage(), rule_set(examples=False)
    judged = []
    for stack in stacks:
        answers = answer(database, stack, analysis.evidence)
        context = build_context(analysis.evidence, answers)
        findings = match(rules, context)
        judged.append(Judged(answers, judge(analysis.evidence, answers, findings, context.workload)))
    return build_report(
        version=__version__,
        database=database.date,
        target=target,
        graph=analysis.graph,
        facts=analysis.facts,
        evidence=analysis.evidence,
        judged=judged,
        device_code=analysis.device_code,
        host=dict(host) if host is not None else None,
        skipped=analysis.skipped,
        assumptions=assumptions,
        hashes=analysis.hashes,
    )


def together(target: str, reports: Sequence[Report], skipped: Sequence[Skipped] = ()) -> Report | Applications:
    """One report as it is; several as the applications of a folder."""
    if len(reports) == 1:
        return reports[0]
    return Applications(
        schema=SCHEMA,
        zcheck=__version__,
        database=coverage().date,
        target=target,
        applications=tuple(reports),
        skipped=tuple(skipped),
    )
