"""Predicates over everything else: modules, device code, frameworks, limitations, the PC, the stack."""

from __future__ import annotations

from typing import Literal

from zcheck.match.context import Context
from zcheck.match.predicate import Match, OneOrMore, Strict, fits, wanted
from zcheck.model.evidence import DeviceCode, FileFact, Framework, HostFact, Known, Limitation, Mention, OwnPath


class ModulePredicate(Strict, frozen=True):
    """A module's own facts."""

    role: OneOrMore | None = None
    machine: OneOrMore | None = None
    load: OneOrMore | None = None
    company: OneOrMore | None = None
    name: OneOrMore | None = None
    dotnet: bool | None = None
    same: Literal["module"] | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per module; a module that starts with the program counts as reached at load."""
        return [
            Match(
                reach="load" if item.load == "start" else "use",
                module=item.name,
                evidence=(item,),
                bound={"machine": item.machine, "version": item.version, "company": item.company},
            )
            for item in context.of(FileFact)
            if isinstance(item, FileFact)
            and fits(self.role, item.role)
            and fits(self.machine, item.machine)
            and fits(self.load, item.load)
            and fits(self.company, item.company)
            and (self.name is None or item.name.lower() in (name.lower() for name in wanted(self.name)))
            and (self.dotnet is None or item.dotnet == self.dotnet)
        ]


class DeviceCodePredicate(Strict, frozen=True):
    """Counts of the replay for the stack's release, or facts that hold for every release."""

    has: OneOrMore | None = None
    """of: dropped, stub, empty, lost, opaque, kernels, ptx, sass: the count is above zero"""
    lacks: OneOrMore | None = None
    ptx_bytes_from: int = 0
    same: Literal["module"] | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per module; reach ``called`` where no kernel of the program loads, else ``use``."""
        release = context.answers.stack.zluda
        records = [item for item in context.of(DeviceCode) if isinstance(item, DeviceCode)]
        replays = [item for item in records if item.release == release]
        total = sum(item.kernels for item in replays)
        none_loads = bool(total) and sum(item.loadable for item in replays) == 0
        facts_only = {*wanted(self.has), *wanted(self.lacks)} <= {"opaque", "ptx", "sass", "containers"}
        found = []
        for item in records:
            # What is there holds for all releases and stands in an item of its own; what loads is said per release.
            if item.release != ("" if facts_only else release):
                continue
            if item.ptx_bytes < self.ptx_bytes_from:
                continue
            if all(getattr(item, name) for name in wanted(self.has)) and not any(
                getattr(item, name) for name in wanted(self.lacks)
            ):
                bound = {
                    name: str(getattr(item, name))
                    for name in ("kernels", "loadable", "dropped", "stub", "empty", "lost", "ptx_bytes", "containers")
                }
                found.append(
                    Match(
                        reach="called" if none_loads and item.release else "use",
                        module=item.module,
                        evidence=(item,),
                        bound={**bound, "note": item.note, "ptx_mb": f"{item.ptx_bytes / 1e6:.1f}"},
                    )
                )
        return found


class FrameworkPredicate(Strict, frozen=True):
    """A framework recognised in the bundle; versions compare as dotted numbers."""

    name: OneOrMore | None = None
    version_from: str | None = None
    version_before: str | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per framework."""
        found = []
        for item in context.of(Framework):
            assert isinstance(item, Framework)
            if not fits(self.name, item.name):
                continue
            version = _version(item.version)
            if self.version_from is not None and (not version or version < _version(self.version_from)):
                continue
            if self.version_before is not None and (not version or version >= _version(self.version_before)):
                continue
            bound = {"framework": item.name, "version": item.version, "cuda": item.cuda}
            found.append(Match(module=item.module or None, evidence=(item,), bound=bound))
        return found


class KnownPredicate(Strict, frozen=True):
    """What is known of a framework or application on the stack's release; only where its workload is needed."""

    effect: OneOrMore | None = None
    key: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per known fact, reach ``use``: how surely the program gets there nobody has said."""
        release = context.answers.stack.zluda
        found = []
        for item in context.of(Known):
            assert isinstance(item, Known)
            needed = not item.family or context.needs.get(item.family) in ("required", "optional")
            if item.release == release and needed and fits(self.effect, item.effect) and fits(self.key, item.key):
                bound = {
                    "subject": item.subject,
                    "note": item.note,
                    "value": item.remedy,
                    "key": item.key,
                    "text": item.source,
                }
                found.append(Match(module=item.module or None, evidence=(item,), bound=bound, confidence="medium"))
        return found


class OwnPathPredicate(Strict, frozen=True):
    """The program's own way to an AMD GPU."""

    api: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per API, with the modules that show it."""
        groups: dict[str, list[OwnPath]] = {}
        for item in context.of(OwnPath):
            assert isinstance(item, OwnPath)
            if fits(self.api, item.api):
                groups.setdefault(item.api, []).append(item)
        return [
            Match(
                module=items[0].module,
                evidence=tuple(items),
                bound={"api": api, "note": items[0].note, "modules": ", ".join(item.module for item in items)},
            )
            for api, items in groups.items()
        ]


class StringPredicate(Strict, frozen=True):
    """A string of interest that is no DLL or function name."""

    text: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per string."""
        return [
            Match(reach="mention", module=item.module, evidence=(item,), bound={"text": item.text})
            for item in context.of(Mention)
            if isinstance(item, Mention) and fits(self.text, item.text)
        ]


class LimitationPredicate(Strict, frozen=True):
    """Why something could not be judged."""

    kind: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per limitation."""
        return [
            Match(module=item.module, evidence=(item,), bound={"kind": item.kind, "note": item.note})
            for item in context.of(Limitation)
            if isinstance(item, Limitation) and fits(self.kind, item.kind)
        ]


class HostPredicate(Strict, frozen=True):
    """A fact of the PC."""

    key: OneOrMore | None = None
    value: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per fact, at load: a host cause fails before the program's own."""
        return [
            Match(
                reach="load",
                module=item.subject or None,
                evidence=(item,),
                bound={"key": item.key, "value": item.value, "subject": item.subject, "note": item.note},
            )
            for item in context.of(HostFact)
            if isinstance(item, HostFact) and fits(self.key, item.key) and fits(self.value, item.value)
        ]


class RunPredicate(Strict, frozen=True):
    """How the newest recorded run of this application on this stack and GPU ended."""

    outcome: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match, or none; a recorded run shows what it shows: called."""
        run = context.evidence.newest_run(context.answers.stack)
        if run is None or not fits(self.outcome, run.outcome):
            return []
        bound = {"date": run.date, "note": run.note, "gpu": run.gpu}
        return [Match(reach="called", module=context.evidence.target, evidence=(run,), bound=bound)]


class StackPredicate(Strict, frozen=True):
    """The stack: a component that its HIP SDK lacks, its launch mode, a capability column of the release or the GPU."""

    component_missing: OneOrMore | None = None
    launch_mode: OneOrMore | None = None
    capability: dict[str, OneOrMore] | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match, or none."""
        answers = context.answers
        missing = [name for name in wanted(self.component_missing) if name in answers.components_missing]
        if self.component_missing is not None and not missing:
            return []
        if not fits(self.launch_mode, answers.stack.launch_mode):
            return []
        for name, value in (self.capability or {}).items():
            if not fits(value, answers.capabilities.get(name, "unknown")):
                return []
        return [Match(bound={"component": ", ".join(missing)})]


def _version(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split("+")[0].split("."):
        digits = "".join(char for char in part if char.isdigit())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)
