"""Device code of an application's own modules: read once, replayed for every release asked for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from zcheck.cli.cache_store import FactCache
from zcheck.cli.data import coverage
from zcheck.coverage.replay_facts import PtxTables, release_ptx
from zcheck.errors import InputError, UsageError
from zcheck.model.base import Skipped
from zcheck.model.device_code import DeviceCodeFacts, ReleasePtx, Replay
from zcheck.model.evidence import DeviceCode
from zcheck.model.report import DeviceCodeReport


@dataclass(frozen=True)
class DeviceFound:
    """What one module's device code gives the report."""

    items: tuple[DeviceCode, ...]
    reports: tuple[DeviceCodeReport, ...]


@lru_cache(maxsize=1)
def _tables() -> PtxTables:
    return coverage().ptx_tables()


@lru_cache(maxsize=64)
def _release(tag: str) -> ReleasePtx | None:
    try:
        return release_ptx(_tables(), tag)
    except UsageError:
        return None  # a release whose device code handling was not read


class DeviceReader:
    """Reads device code with a cache of its facts."""

    def __init__(self, releases: Sequence[str], gpu: str | None = None, cache: FactCache | None = None) -> None:
        """``releases``: tags to replay; ``cache``: where facts are kept, the caller's to close."""

        self._releases = [found for tag in dict.fromkeys(releases) if (found := _release(tag)) is not None]
        self._gpu = gpu
        self._cache = cache or FactCache(None)
        self._facts: dict[Path, DeviceCodeFacts | None] = {}
        self.skipped: list[Skipped] = []

    def facts(self, path: Path, name: str) -> DeviceCodeFacts | None:
        """The device code of one file, None when it has none or cannot be read (noted as skipped)."""
        from zcheck.parse.fatbin import read_device_code

        if path not in self._facts:
            try:
                self._facts[path] = self._cache.file_fact(
                    "device", path, DeviceCodeFacts, lambda: read_device_code(path, cache=self._cache), name
                )
            except InputError as error:
                self.skipped.append(Skipped(path=name, reason=error.message))
                self._facts[path] = None
        return self._facts[path]

    def found(self, name: str, code: DeviceCodeFacts | None, path: Path | None = None) -> DeviceFound | None:
        """What a module's device code gives the report under every release; None where there is none.

        ``path``: the file, so that the replays can be kept.
        """
        if code is None or not (code.containers or code.loose or code.opaque):
            return None
        if path is None:
            return self._replayed(name, code)
        asked = (name, self._gpu or "", coverage().meta["hash"], *(release.release for release in self._releases))
        return self._cache.file_fact("replay", path, DeviceFound, lambda: self._replayed(name, code), *asked)

    def _replayed(self, name: str, code: DeviceCodeFacts) -> DeviceFound:
        from zcheck.coverage.replay import replay
        from zcheck.coverage.replay_report import device_code_reports, evidence_items

        replays = [replay(code, release) for release in self._releases]
        return DeviceFound(
            items=evidence_items(name, code, replays),
            reports=device_code_reports(name, code, replays, self._notes(code, replays)),
        )

    def _notes(self, code: DeviceCodeFacts, replays: Sequence[Replay]) -> list[str]:
        from zcheck.coverage.replay_report import compile_estimate, hardware_notes

        notes: list[str] = []
        for release, one in zip(self._releases, replays, strict=True):
            lines = list(hardware_notes(code, release, self._gpu, _tables().gfx)) if self._gpu else []
            estimate = compile_estimate(one, release)
            notes += [f"{release.release}: {text}" for text in (*lines, *([estimate] if estimate else []))]
        return notes
