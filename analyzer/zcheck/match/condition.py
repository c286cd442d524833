"""The ``when`` of a rule: predicates under all, any and not (design section 5).

A predicate looks at a Context and gives its matches; a match says what it binds (module, library, functions, reach,
evidence). ``all`` takes the matches of its first part and keeps them where every other part holds; ``any`` joins the
matches of its parts; ``not`` holds where its part has none. A later part is tied to the same module or library as the
first only where it says ``same: module`` or ``same: library``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from zcheck.match.context import Context
from zcheck.match.predicate import Match
from zcheck.match.predicates_facts import (
    DeviceCodePredicate,
    FrameworkPredicate,
    HostPredicate,
    KnownPredicate,
    LimitationPredicate,
    ModulePredicate,
    OwnPathPredicate,
    RunPredicate,
    StackPredicate,
    StringPredicate,
)
from zcheck.match.predicates_uses import FunctionPredicate, LibraryPredicate
from zcheck.model.base import Record

Predicate = (
    FunctionPredicate
    | LibraryPredicate
    | ModulePredicate
    | DeviceCodePredicate
    | FrameworkPredicate
    | OwnPathPredicate
    | StringPredicate
    | LimitationPredicate
    | HostPredicate
    | KnownPredicate
    | RunPredicate
    | StackPredicate
)
# The key of each predicate in a rule file; ``workload`` and ``model_op`` have a shape of their own (see Condition).
PREDICATES: dict[str, type[Record]] = {
    "function": FunctionPredicate,
    "library": LibraryPredicate,
    "module": ModulePredicate,
    "device_code": DeviceCodePredicate,
    "framework": FrameworkPredicate,
    "own_path": OwnPathPredicate,
    "string": StringPredicate,
    "limitation": LimitationPredicate,
    "host": HostPredicate,
    "run": RunPredicate,
    "known": KnownPredicate,
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
