"""The predicates of rules: few and closed (design section 5).

A predicate looks at a Context and gives its matches; a match says what it binds (module, library, functions, reach,
evidence). ``all`` takes the matches of its first part and keeps them where every other part holds; ``any`` joins the
matches of its parts; ``not`` holds where its part has none. A later part is tied to the same module or library as the
first only where it says ``same: module`` or ``same: library``.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal

from zcheck.match.context import Context, Hit
from zcheck.model.base import Confidence, Record
from zcheck.model.evidence import (
    DeviceCode,
    FileFact,
    Framework,
    HostFact,
    Item,
    Known,
    Limitation,
    Mention,
    OwnPath,
)
from zcheck.model.finding import Reach

# A family of DLLs under one word in rules: the table's own ids on the right.
LIBRARY_GROUPS: dict[str, tuple[str, ...]] = {"cudnn": ("cudnn", "cudnn8", "cudnn9")}


@dataclass(frozen=True)
class Match:
    """What one predicate found, and what it binds for the message."""

    reach: Reach = "use"
    module: str | None = None
    library: str | None = None
    functions: tuple[str, ...] = ()
    evidence: tuple[Item, ...] = ()
    confidence: Confidence = "high"
    bound: dict[str, str] = field(default_factory=dict)


class _Strict(Record, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    pass


OneOrMore = str | list[str]


def _wanted(value: OneOrMore | None) -> tuple[str, ...]:
    if value is None:
        return ()
    return (value,) if isinstance(value, str) else tuple(value)


def _ok(value: OneOrMore | None, actual: str | None) -> bool:
    return value is None or (actual is not None and actual in _wanted(value))


def _libraries(value: OneOrMore | None) -> tuple[str, ...]:
    return tuple(name for word in _wanted(value) for name in LIBRARY_GROUPS.get(word, (word,)))


class FunctionPredicate(_Strict, frozen=True):
    """Functions in use: exact names, libraries, families, states; grouped by module, library and reach."""

    library: OneOrMore | None = None
    name: OneOrMore | None = None
    family: OneOrMore | None = None
    kind: OneOrMore | None = None
    reach: OneOrMore | None = None
    state: OneOrMore | None = None
    role: OneOrMore | None = None
    load: OneOrMore | None = None
    provision: OneOrMore | None = None
    stub: bool | None = None
    placed: bool | None = None
    has_limit: bool | None = None
    has_family: bool | None = None
    at_least: int = 1

    def matches(self, context: Context) -> list[Match]:
        """One match per module, library and reach."""
        groups: dict[tuple[str, str, Reach], list[Hit]] = {}
        for hit in context.hits:
            if self._fits(hit):
                assert hit.library is not None
                groups.setdefault((hit.use.module, hit.library.library, hit.reach), []).append(hit)
        return [self._match(*key, hits) for key, hits in groups.items() if len(hits) >= self.at_least]

    def _fits(self, hit: Hit) -> bool:
        use, library, function = hit.use, hit.library, hit.function
        if function is None or library is None:
            return False
        return (
            (self.library is None or function.library in _libraries(self.library))
            and _ok(self.name, function.name)
            and (self.family is None or any(family in _wanted(self.family) for family in function.families))
            and _ok(self.kind, use.kind)
            and _ok(self.reach, hit.reach)
            and _ok(self.state, function.state)
            and _ok(self.role, use.role)
            and _ok(self.load, use.load)
            and _ok(self.provision, library.provision)
            and (self.stub is None or library.stub == self.stub)
            and (self.placed is None or library.placed == self.placed)
            and (self.has_limit is None or bool(function.limit) == self.has_limit)
            and (self.has_family is None or bool(function.families) == self.has_family)
        )

    @staticmethod
    def _match(module: str, library: str, reach: Reach, hits: list[Hit]) -> Match:
        names = tuple(dict.fromkeys(hit.use.function for hit in hits))
        first = hits[0]
        assert first.library is not None and first.function is not None
        limits = dict.fromkeys(
            f"{hit.use.function}: {hit.function.limit}" for hit in hits if hit.function and hit.function.limit
        )
        levels = [hit.use.confidence for hit in hits] + [hit.function.confidence for hit in hits if hit.function]
        states = dict.fromkeys(hit.function.state for hit in hits if hit.function)
        causes = dict.fromkeys(hit.use.because for hit in hits if hit.use.because)
        since = dict.fromkeys(hit.function.since for hit in hits if hit.function and hit.function.since)
        return Match(
            reach=reach,
            module=module,
            library=library,
            functions=names,
            evidence=tuple(hit.use for hit in hits),
            confidence=_best(levels),
            bound={
                "dll": first.use.dll,
                "file": first.library.file or first.use.dll,
                "limit": "; ".join(limits),
                "state": ", ".join(states),
                "hip": ", ".join(first.library.hip_missing),
                "because": ", ".join(causes),
                "since": ", ".join(since),
            },
        )


class LibraryPredicate(_Strict, frozen=True):
    """DLLs in use as a whole: which library, who answers, placed or not; grouped by module and DLL."""

    library: OneOrMore | None = None
    dll: OneOrMore | None = None
    provision: OneOrMore | None = None
    kind: OneOrMore | None = None
    role: OneOrMore | None = None
    load: OneOrMore | None = None
    found: OneOrMore | None = None
    name_answered: bool | None = None
    placed: bool | None = None
    stub: bool | None = None
    cuda: bool | None = None
    hip_missing: OneOrMore | None = None
    start_fails: bool | None = None
    driver_only: bool | None = None
    reach: OneOrMore | None = None
    same: Literal["module", "library"] | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per module and DLL, with the highest reach of its uses."""
        groups: dict[tuple[str, str], list[Hit]] = {}
        for hit in context.hits:
            if self._fits(hit):
                groups.setdefault((hit.use.module, hit.use.dll.lower()), []).append(hit)
        matches = []
        for (module, _), hits in groups.items():
            library = hits[0].library
            names = tuple(dict.fromkeys(hit.use.function for hit in hits if hit.use.function))
            matches.append(
                Match(
                    reach="init" if self.start_fails else _highest([hit.dll_reach for hit in hits]),
                    module=module,
                    library=library.library if library else None,
                    functions=names,
                    evidence=tuple(hit.use for hit in hits),
                    confidence=_best([hit.use.confidence for hit in hits]),
                    bound={
                        "dll": hits[0].use.dll,
                        "file": (library.file if library else None) or hits[0].use.dll,
                        "hip": ", ".join(library.hip_missing) if library else "",
                        "why": (library.start_fails if library else None) or "",
                    },
                )
            )
        return matches

    def _fits(self, hit: Hit) -> bool:
        use, library = hit.use, hit.library
        if self.cuda is not None and self.cuda != (library is not None):
            return False
        needs_library = (self.library, self.name_answered, self.placed, self.stub, self.hip_missing, self.start_fails,
                         self.driver_only)  # fmt: skip
        if library is None and any(value is not None for value in needs_library):
            return False
        provision = library.provision if library else (use.found or None)
        return (
            (self.library is None or (library is not None and library.library in _libraries(self.library)))
            and (self.dll is None or use.dll.lower() in (name.lower() for name in _wanted(self.dll)))
            and _ok(self.provision, provision)
            and _ok(self.kind, use.kind)
            and _ok(self.role, use.role)
            and _ok(self.load, use.load)
            and _ok(self.found, use.found)
            and _ok(self.reach, hit.dll_reach)
            and (self.name_answered is None or (library is not None and library.name_answered == self.name_answered))
            and (self.placed is None or (library is not None and library.placed == self.placed))
            and (self.stub is None or (library is not None and library.stub == self.stub))
            and (self.start_fails is None or (library is not None and bool(library.start_fails) == self.start_fails))
            and (self.driver_only is None or (library is not None and library.driver_only == self.driver_only))
            and (
                self.hip_missing is None
                or (library is not None and any(name in library.hip_missing for name in _wanted(self.hip_missing)))
            )
        )


class ModulePredicate(_Strict, frozen=True):
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
            and _ok(self.role, item.role)
            and _ok(self.machine, item.machine)
            and _ok(self.load, item.load)
            and _ok(self.company, item.company)
            and (self.name is None or item.name.lower() in (name.lower() for name in _wanted(self.name)))
            and (self.dotnet is None or item.dotnet == self.dotnet)
        ]


class DeviceCodePredicate(_Strict, frozen=True):
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
        facts_only = {*_wanted(self.has), *_wanted(self.lacks)} <= {"opaque", "ptx", "sass", "containers"}
        found = []
        for item in records:
            # What is there holds for all releases and stands in an item of its own; what loads is said per release.
            if item.release != ("" if facts_only else release):
                continue
            if item.ptx_bytes < self.ptx_bytes_from:
                continue
            if all(getattr(item, name) for name in _wanted(self.has)) and not any(
                getattr(item, name) for name in _wanted(self.lacks)
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
                        bound={**bound, "note": item.note},
                    )
                )
        return found


class FrameworkPredicate(_Strict, frozen=True):
    """A framework recognised in the bundle; versions compare as dotted numbers."""

    name: OneOrMore | None = None
    version_from: str | None = None
    version_before: str | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per framework."""
        found = []
        for item in context.of(Framework):
            assert isinstance(item, Framework)
            if not _ok(self.name, item.name):
                continue
            version = _version(item.version)
            if self.version_from is not None and (not version or version < _version(self.version_from)):
                continue
            if self.version_before is not None and (not version or version >= _version(self.version_before)):
                continue
            bound = {"framework": item.name, "version": item.version, "cuda": item.cuda}
            found.append(Match(module=item.module or None, evidence=(item,), bound=bound))
        return found


class KnownPredicate(_Strict, frozen=True):
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
            if item.release == release and needed and _ok(self.effect, item.effect) and _ok(self.key, item.key):
                bound = {
                    "subject": item.subject,
                    "note": item.note,
                    "value": item.remedy,
                    "key": item.key,
                    "text": item.source,
                }
                found.append(Match(module=item.module or None, evidence=(item,), bound=bound, confidence="medium"))
        return found


class OwnPathPredicate(_Strict, frozen=True):
    """The program's own way to an AMD GPU."""

    api: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per API, with the modules that show it."""
        groups: dict[str, list[OwnPath]] = {}
        for item in context.of(OwnPath):
            assert isinstance(item, OwnPath)
            if _ok(self.api, item.api):
                groups.setdefault(item.api, []).append(item)
        return [
            Match(
                module=items[0].module,
                evidence=tuple(items),
                bound={"api": api, "note": items[0].note, "modules": ", ".join(item.module for item in items)},
            )
            for api, items in groups.items()
        ]


class StringPredicate(_Strict, frozen=True):
    """A string of interest that is no DLL or function name."""

    text: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per string."""
        return [
            Match(reach="mention", module=item.module, evidence=(item,), bound={"text": item.text})
            for item in context.of(Mention)
            if isinstance(item, Mention) and _ok(self.text, item.text)
        ]


class LimitationPredicate(_Strict, frozen=True):
    """Why something could not be judged."""

    kind: OneOrMore | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match per limitation."""
        return [
            Match(module=item.module, evidence=(item,), bound={"kind": item.kind, "note": item.note})
            for item in context.of(Limitation)
            if isinstance(item, Limitation) and _ok(self.kind, item.kind)
        ]


class HostPredicate(_Strict, frozen=True):
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
            if isinstance(item, HostFact) and _ok(self.key, item.key) and _ok(self.value, item.value)
        ]


class StackPredicate(_Strict, frozen=True):
    """The stack: a component that its HIP SDK lacks, its launch mode, a capability column of the release or the GPU."""

    component_missing: OneOrMore | None = None
    launch_mode: OneOrMore | None = None
    capability: dict[str, OneOrMore] | None = None

    def matches(self, context: Context) -> list[Match]:
        """One match, or none."""
        answers = context.answers
        missing = [name for name in _wanted(self.component_missing) if name in answers.components_missing]
        if self.component_missing is not None and not missing:
            return []
        if not _ok(self.launch_mode, answers.stack.launch_mode):
            return []
        for name, value in (self.capability or {}).items():
            if not _ok(value, answers.capabilities.get(name, "unknown")):
                return []
        return [Match(bound={"component": ", ".join(missing)})]


def _highest(reaches: list[Reach]) -> Reach:
    order: tuple[Reach, ...] = ("load", "init", "called", "use", "mention")
    return next(reach for reach in order if reach in reaches)


def _best(levels: list[Confidence]) -> Confidence:
    order: tuple[Confidence, ...] = ("high", "medium", "low")
    return next((level for level in order if level in levels), "high")


def _version(text: str) -> tuple[int, ...]:
    numbers = []
    for part in text.split("+")[0].split("."):
        digits = "".join(char for char in part if char.isdigit())
        if not digits:
            break
        numbers.append(int(digits))
    return tuple(numbers)


Predicate = (
    FunctionPredicate
    | LibraryPredicate
    | ModulePredicate
    | DeviceCodePredicate
    | FrameworkPredicate
    | KnownPredicate
    | OwnPathPredicate
    | StringPredicate
    | LimitationPredicate
    | HostPredicate
    | StackPredicate
)
# The key of each predicate in a rule file; ``workload`` and ``model_op`` have a shape of their own (see Condition).
PREDICATES: dict[str, type[Record]] = {
    "function": FunctionPredicate,
    "library": LibraryPredicate,
    "module": ModulePredicate,
    "device_code": DeviceCodePredicate,
    "framework": FrameworkPredicate,
    "known": KnownPredicate,
    "own_path": OwnPathPredicate,
    "string": StringPredicate,
    "limitation": LimitationPredicate,
    "host": HostPredicate,
    "stack": StackPredicate,
}


@dataclass(frozen=True)
class Condition:
    """A node of ``when``: ``all``, ``any`` or ``not`` with parts, one predicate, or a workload test."""

    op: Literal["all", "any", "not", "predicate", "workload"]
    parts: tuple[Condition, ...] = ()
    predicate: Predicate | None = None
    workload: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def matches(self, context: Context) -> list[Match]:
        """The matches of this node; empty where it does not hold."""
        if self.op == "predicate":
            assert self.predicate is not None
            return self.predicate.matches(context)
        if self.op == "workload":
            return self._workload(context)
        if self.op == "not":
            return [] if self.parts[0].matches(context) else [Match()]
        if self.op == "any":
            return [match for part in self.parts for match in part.matches(context)]
        found = self.parts[0].matches(context)
        for part in self.parts[1:]:
            if not found:
                break
            found = part.restrict(found, context)
        return found

    def restrict(self, found: list[Match], context: Context) -> list[Match]:
        """Those of ``found`` for which this node holds, with what it binds added."""
        if self.op == "not":
            same = getattr(self.parts[0].predicate, "same", None)
            others = self.parts[0].matches(context)
            return [match for match in found if not any(_tied(match, other, same) for other in others)]
        same = getattr(self.predicate, "same", None)
        others = self.matches(context)
        kept = []
        for match in found:
            tied = next((other for other in others if _tied(match, other, same)), None)
            if tied is not None:
                extra = () if tied.evidence == match.evidence else tied.evidence
                bound = {**{key: value for key, value in tied.bound.items() if value}, **match.bound}
                kept.append(replace(match, evidence=match.evidence + extra, bound=bound))
        return kept

    def _workload(self, context: Context) -> list[Match]:
        reasons = {reason.family: reason for reason in context.workload}
        said: list[str] = []
        for family, wanted in self.workload:
            if context.needs.get(family, "not seen") not in wanted:
                return []
            said += reasons[family].reasons if family in reasons else []
        families = ", ".join(family for family, _ in self.workload)
        return [Match(bound={"workload": families, "by": "; ".join(said[:3])})]


def _tied(one: Match, other: Match, same: str | None) -> bool:
    if same == "module":
        return one.module is not None and other.module is not None and one.module.lower() == other.module.lower()
    if same == "library":
        return one.library == other.library
    return True
