"""Evidence joined with a stack's answers: what each predicate looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from zcheck.match.workload import OPERATOR_LIBRARIES, derive_workload
from zcheck.model.evidence import Evidence, FileFact, Item, Use, Workload
from zcheck.model.finding import Reach
from zcheck.model.report import WorkloadReason
from zcheck.model.stack import Answers, FunctionAnswer, LibraryAnswer, State

FAILING: tuple[State, ...] = ("returns-error", "ends-process", "not-exported", "library-missing")
OWN_ROLES = ("entry", "module")


@dataclass(frozen=True)
class Hit:
    """One use with what the stack answers to it. ``library`` is None for a DLL that is no CUDA library."""

    use: Use
    library: LibraryAnswer | None
    function: FunctionAnswer | None
    reach: Reach
    dll_reach: Reach = "use"
    """reach of the DLL as a whole: ``load`` where its absence stops the loader"""


@dataclass(frozen=True)
class Context:
    """Everything the predicates of one stack may ask for."""

    evidence: Evidence
    answers: Answers
    hits: tuple[Hit, ...]
    workload: tuple[WorkloadReason, ...]
    files: dict[str, FileFact] = field(default_factory=dict)

    @cached_property
    def needs(self) -> dict[str, str]:
        """Workload family to required, optional, not seen or unknown."""
        return {reason.family: reason.need for reason in self.workload}

    def of(self, kind: type) -> list[Item]:
        """The evidence items of one record type."""
        return [item for item in self.evidence.items if isinstance(item, kind)]


def build_context(evidence: Evidence, answers: Answers) -> Context:
    """Join evidence and answers for one stack, with the reach of every use (design section 2)."""
    libraries = {answer.dll.lower(): answer for answer in answers.libraries}
    functions = {(answer.library, answer.name): answer for answer in answers.functions}
    files = {item.name.lower(): item for item in evidence.items if isinstance(item, FileFact)}

    def asked(use: Use) -> tuple[LibraryAnswer | None, FunctionAnswer | None]:
        library = libraries.get(use.dll.lower())
        if library is None or not use.function:
            return library, None
        return library, functions.get((library.library, use.function))

    # A replaced module is not loaded, so what it would import does not matter.
    replaced = {dll for dll, answer in libraries.items() if answer.provision == "replaced"}
    pairs = [(use, *asked(use)) for use in evidence.uses() if _file_name(use.module) not in replaced]
    workload = derive_workload(evidence, pairs)
    needs = {reason.family: reason.need for reason in workload}
    refused = _wholly_refused(pairs, _shown(evidence, pairs))
    known = any(reason.need in ("required", "optional") for reason in workload)
    hits = tuple(
        _hit(use, library, function, _reach(use, library, function, needs, refused, known))
        for use, library, function in pairs
    )
    return Context(evidence, answers, hits, workload, files)


_Pair = tuple[Use, LibraryAnswer | None, FunctionAnswer | None]


def _file_name(module: str) -> str:
    """Modules are named by their path where the bundle has two of one name."""
    return module.rsplit("/", 1)[-1].lower()


def _shown(evidence: Evidence, pairs: list[_Pair]) -> set[str]:
    """Families that more than imports show to be called: models, scripts, traces, operators of a framework."""
    stated = {item.family for item in evidence.items if isinstance(item, Workload) and item.need == "required"}
    called = (
        function.families
        for use, _, function in pairs
        if function is not None
        and (use.kind == "call" or (use.role in OWN_ROLES and function.library in OPERATOR_LIBRARIES))
    )
    return stated.union(*called)


def _wholly_refused(pairs: list[_Pair], shown: set[str]) -> set[tuple[str, str, str]]:
    """(role group, library, family) where every function used by that group fails: whichever is called, it fails.

    That any is called is shown by ``shown``, or by the import table of a module that starts with the program; names
    looked up at run time and modules loaded later may be for a choice that nobody makes.
    """
    state: dict[tuple[str, str, str], bool] = {}
    sure: set[tuple[str, str, str]] = set()
    for use, _, function in pairs:
        if function is None or use.kind == "mention":
            continue
        group = "own" if use.role in OWN_ROLES else use.role
        for family in function.families:
            key = (group, function.library, family)
            state[key] = state.get(key, True) and function.state in FAILING
            if family in shown or (use.kind in ("import", "delay") and use.load == "start"):
                sure.add(key)
    return {key for key, fails in state.items() if fails and key in sure}


def _hit(use: Use, library: LibraryAnswer | None, function: FunctionAnswer | None, reach: Reach) -> Hit:
    at_load = use.kind == "import" and use.load == "start" and _dll_missing(use, library)
    if library is not None and library.placed and any(need.startswith("HIP runtime") for need in library.hip_missing):
        at_load = True  # the launcher injects the driver DLL, and the loader cannot satisfy its imports
    return Hit(use, library, function, reach, "load" if at_load else reach)


def _reach(
    use: Use,
    library: LibraryAnswer | None,
    function: FunctionAnswer | None,
    needs: Mapping[str, str],
    refused: set[tuple[str, str, str]],
    known: bool,
) -> Reach:
    if use.init:
        return "init"
    if use.kind == "call":
        return "called"
    if use.kind == "mention":
        return "mention"
    if use.kind == "import" and use.load == "start" and _load_fails(use, library, function):
        return "load"
    if function is None or library is None:
        return "use"
    own = use.role in OWN_ROLES
    group = "own" if own else use.role
    for family in function.families:
        if needs.get(family) == "required" and (group, function.library, family) in refused:
            return "called"
    if use.role == "framework" and known:
        # A framework imports everything; once the program's own workload is known, the rest is only mentioned.
        wanted = any(needs.get(family) in ("required", "optional") for family in function.families)
        return "use" if wanted else "mention"
    return "use"


def _load_fails(use: Use, library: LibraryAnswer | None, function: FunctionAnswer | None) -> bool:
    """True when the loader itself cannot resolve the import and nobody can put the DLL in place."""
    if library is None or function is None:
        return _dll_missing(use, library)
    if function.state == "not-exported":
        return True
    return library.driver_only and library.provision == "absent"


def _dll_missing(use: Use, library: LibraryAnswer | None) -> bool:
    if library is None:
        return use.found in ("missing", "mismatch")
    return library.provision in ("absent", "missing")
