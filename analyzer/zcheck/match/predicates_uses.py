"""Predicates over the uses of functions and DLLs, joined with what the stack answers."""

from __future__ import annotations

from typing import Literal

from zcheck.match.context import Context, Hit
from zcheck.match.predicate import Match, OneOrMore, Strict, fits, libraries, wanted
from zcheck.model.base import Confidence
from zcheck.model.finding import Reach


class FunctionPredicate(Strict, frozen=True):
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
            (self.library is None or function.library in libraries(self.library))
            and fits(self.name, function.name)
            and (self.family is None or any(family in wanted(self.family) for family in function.families))
            and fits(self.kind, use.kind)
            and fits(self.reach, hit.reach)
            and fits(self.state, function.state)
            and fits(self.role, use.role)
            and fits(self.load, use.load)
            and fits(self.provision, library.provision)
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


class LibraryPredicate(Strict, frozen=True):
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
            (self.library is None or (library is not None and library.library in libraries(self.library)))
            and (self.dll is None or use.dll.lower() in (name.lower() for name in wanted(self.dll)))
            and fits(self.provision, provision)
            and fits(self.kind, use.kind)
            and fits(self.role, use.role)
            and fits(self.load, use.load)
            and fits(self.found, use.found)
            and fits(self.reach, hit.dll_reach)
            and (self.name_answered is None or (library is not None and library.name_answered == self.name_answered))
            and (self.placed is None or (library is not None and library.placed == self.placed))
            and (self.stub is None or (library is not None and library.stub == self.stub))
            and (self.start_fails is None or (library is not None and bool(library.start_fails) == self.start_fails))
            and (self.driver_only is None or (library is not None and library.driver_only == self.driver_only))
            and (
                self.hip_missing is None
                or (library is not None and any(name in library.hip_missing for name in wanted(self.hip_missing)))
            )
        )


def _highest(reaches: list[Reach]) -> Reach:
    order: tuple[Reach, ...] = ("load", "init", "called", "use", "mention")
    return next(reach for reach in order if reach in reaches)


def _best(levels: list[Confidence]) -> Confidence:
    order: tuple[Confidence, ...] = ("high", "medium", "low")
    return next((level for level in order if level in levels), "high")
