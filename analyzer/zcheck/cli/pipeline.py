"""From a path to reports: the stages in order, each handed what the one before it made."""

from __future__ import annotations

import contextlib
import datetime
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from zcheck import __version__
from zcheck.cli.cache_store import FactCache, default_path
from zcheck.cli.content import ContentReader
from zcheck.cli.data import coverage, rule_set
from zcheck.cli.entry import Analysis, EntryReading
from zcheck.cli.hidden import HiddenReader
from zcheck.cli.ignores import Ignore, split
from zcheck.cli.known_pc import named_gpu
from zcheck.cli.progress import Progress
from zcheck.errors import InputError
from zcheck.model.base import Skipped
from zcheck.model.bundle import Bundle
from zcheck.model.facts import PeFacts
from zcheck.model.report import SCHEMA, Applications, Report
from zcheck.model.stack import Stack

if TYPE_CHECKING:
    from zcheck.cli.known_pc import KnownPc

_LIBRARIES_READ = 400
"""libraries of a folder without a program that are read to see which only serve others"""


class Reader:
    """Reads each PE file once, for however many entries."""

    def __init__(self, bundle: Bundle, progress: Progress, cache: FactCache | None = None) -> None:
        """``bundle`` gives the root that paths are relative to; ``cache`` keeps facts between runs."""
        self._root = Path(bundle.root)
        self._cache = cache or FactCache(None)
        self._progress = progress
        self._facts: dict[str, PeFacts | None] = {}
        self.skipped: list[Skipped] = []

    def read(self, path: str, must: bool = False) -> PeFacts | None:
        """The facts of a bundle file; None (noted as skipped) when it is no PE file, unless it ``must`` be one."""
        if path not in self._facts:
            from zcheck.parse.pe import read_pe

            self._progress.step(path)
            try:
                file = self._root / path
                self._facts[path] = self._cache.file_fact("pe", file, PeFacts, lambda: read_pe(file), file.name)
            except InputError as error:
                if must:
                    raise
                self._facts[path] = None
                self.skipped.append(Skipped(path=path, reason=error.message))
        return self._facts[path]


def analyse(
    target: Path, stacks: Sequence[Stack], progress: Progress, cache: FactCache | None = None
) -> tuple[Bundle, list[Analysis]]:
    """The bundle of ``target`` and an analysis of each of its entries; raises InputError and UsageError.

    Of ``stacks`` only the releases are looked at: the replay of device code is evidence per release. Without a
    ``cache`` the user's is opened for the time of the call.
    """
    from zcheck.discover import discover

    if cache is None:
        with FactCache(default_path()) as kept:
            return analyse(target, stacks, progress, kept)
    bundle = discover(target)
    reader = Reader(bundle, progress, cache)
    entries = entries_of(bundle, reader)
    alone = len(entries) == 1
    found = []
    reading = reading_of(bundle, reader, stacks, cache)
    for entry in entries:
        if reader.read(entry, must=alone) is not None:
            found.append(reading.analyse(entry))
    if not found:
        raise InputError(reader.skipped[0].reason if reader.skipped else f"{target.name}: nothing to judge")
    return bundle, found


def reading_of(bundle: Bundle, reader: Reader, stacks: Sequence[Stack], cache: FactCache) -> EntryReading:
    """The readers of a bundle's entries, for the releases of ``stacks``."""
    from zcheck.cli.device import DeviceReader

    gpu = next((stack.gpu for stack in stacks if stack.gpu), None)
    device = DeviceReader([stack.zluda for stack in stacks], gpu, cache)
    content = ContentReader(bundle, [stack.zluda for stack in stacks], cache)
    return EntryReading(bundle, reader, device, HiddenReader(cache), content)


def entries_of(bundle: Bundle, reader: Reader) -> Sequence[str]:
    """The entries to judge: of a folder with libraries only, those that do not merely serve others."""
    if len(bundle.entries) < 2 or any(entry.lower().endswith(".exe") for entry in bundle.entries):
        return bundle.entries
    if len(bundle.entries) > _LIBRARIES_READ:
        return bundle.entries
    from zcheck.resolve import top_modules

    read = {entry: facts for entry in bundle.entries if (facts := reader.read(entry)) is not None}
    top = top_modules(bundle, read) or bundle.entries
    # NVIDIA's libraries beside a program's own serve it, whether or not an import says so.
    own = [entry for entry in top if coverage().library_of(entry.rpartition("/")[2]) is None]
    return own or top


def not_loaded(bundle: Bundle, analyses: Sequence[Analysis]) -> tuple[Skipped, ...]:
    """Of a folder with several programs: that libraries lie in it which none of them was seen to load. They are judged
    with a program or not at all, and a count of programs alone would hide them."""
    from zcheck.discover.kinds import LIBRARIES

    if len(analyses) < 2 or not any(analysis.entry.lower().endswith(".exe") for analysis in analyses):
        return ()
    loaded = {
        node.id for each in analyses if each.graph is not None for node in each.graph.nodes if node.load != "unreached"
    }
    left = sum(
        file.kind == "pe" and file.path.lower().endswith(LIBRARIES) and file.path not in loaded for file in bundle.files
    )
    if not left:
        return ()
    what = "1 library that no program here was" if left == 1 else f"{left} libraries that no program here was"
    return (Skipped(path=".", reason=f"{what} seen to load; name a library to have it judged by itself"),)


def hash_modules(analysis: Analysis) -> None:
    """Fill the SHA-256 of the bundle's modules that the entry reaches; a file that cannot be read has none."""
    from zcheck.parse.pe import sha256

    if analysis.graph is None or analysis.root is None:
        return
    for node in analysis.graph.nodes:
        if node.origin == "bundle" and node.load != "unreached" and node.id not in analysis.hashes:
            with contextlib.suppress(OSError):
                analysis.hashes[node.id] = sha256(analysis.root / node.id)


def judge_analysis(
    analysis: Analysis,
    stacks: Iterable[Stack],
    target: str,
    pc: KnownPc | None = None,
    assumptions: Sequence[str] = (),
    ignores: Sequence[Ignore] = (),
) -> Report:
    """The report on one analysed entry for every stack; ``pc`` adds what the user's PC makes of each.

    Findings that ``ignores`` cover stay visible and decide nothing.
    """
    from zcheck.coverage import answer
    from zcheck.judge import Judged, build_report, judge
    from zcheck.match import build_context, match

    database, rules = coverage(), rule_set(examples=False)
    judged = []
    said: dict[str, None] = dict.fromkeys(assumptions)
    today = datetime.date.today()
    for stack in stacks:
        evidence = analysis.evidence
        about_gpu = pc.facts(stack) if pc is not None else named_gpu(stack)
        if about_gpu:
            evidence = msgspec.structs.replace(evidence, items=(*evidence.items, *about_gpu))
        answers = answer(
            database, stack, evidence, pc.shown.components if pc else (), pc.shown.components_missing if pc else ()
        )
        context = build_context(evidence, answers)
        findings, ignored, expired = split(match(rules, context), ignores, today)
        said.update(dict.fromkeys(expired))
        judged.append(Judged(answers, judge(evidence, answers, findings, context.workload, ignored)))
    return build_report(
        version=__version__,
        database=database.date,
        target=target,
        graph=analysis.graph,
        facts=analysis.facts,
        evidence=analysis.evidence,
        judged=judged,
        device_code=analysis.device_code,
        host=pc.document if pc is not None else None,
        skipped=analysis.skipped,
        assumptions=tuple(dict.fromkeys((*said, *analysis.notes))),
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
