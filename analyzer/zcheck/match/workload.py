"""Which workload families a program needs, from evidence in order of weight (design section 3, "Workload")."""

from __future__ import annotations

from collections.abc import Sequence

from zcheck.model.evidence import Evidence, Use, Workload
from zcheck.model.report import WORKLOADS, Need, WorkloadReason
from zcheck.model.stack import FunctionAnswer, LibraryAnswer

# Libraries whose functions are framework operators: importing one is a call that the program's own code makes.
OPERATOR_LIBRARIES = ("torch",)
_SHOWN = 6


def derive_workload(
    evidence: Evidence, pairs: Sequence[tuple[Use, LibraryAnswer | None, FunctionAnswer | None]]
) -> tuple[WorkloadReason, ...]:
    """One WorkloadReason per family of ``WORKLOADS``, in that order.

    Weight: what collect/ says outright (models, scripts, traces), then framework operators that the program's own
    modules import, then CUDA library functions of its own modules, last the framework's own imports. A family that is
    the only compute family of the program's own modules is *required*; one of several is *optional*; one that only a
    framework imports is *unknown* while nothing shows the program's workload, and *not seen* otherwise.
    """
    stated: dict[str, list[Workload]] = {}
    for item in evidence.items:
        if isinstance(item, Workload):
            stated.setdefault(item.family, []).append(item)
    called: dict[str, list[str]] = {}
    operators: dict[str, list[str]] = {}
    own: dict[str, list[str]] = {}
    framework: dict[str, list[str]] = {}
    for use, _, function in pairs:
        if function is None or use.kind == "mention":
            continue
        for family in function.families:
            text = f"{use.module}: {use.function}"
            if use.kind == "call":
                called.setdefault(family, []).append(f"{text} is called")
            elif use.role in ("entry", "module"):
                (operators if function.library in OPERATOR_LIBRARIES else own).setdefault(family, []).append(text)
            elif use.role == "framework" and function.library not in OPERATOR_LIBRARIES:
                framework.setdefault(family, []).append(text)
    needs_said = {item.need for items in stated.values() for item in items}
    known = bool(operators or called or needs_said - {"unknown"})
    shown = bool(operators or called or "required" in needs_said)
    sole = [family for family in own if family in WORKLOADS]
    result = []
    for family in WORKLOADS:
        need: Need = "not seen"
        reasons: list[str] = []
        if family in stated:
            needs = [item.need for item in stated[family]]
            need = next((each for each in ("required", "optional", "unknown") if each in needs), "not seen")
            reasons = [item.by for item in stated[family] if item.by]
        if need != "required" and (family in operators or family in called):
            need = "required"
            reasons += called.get(family, []) + operators.get(family, [])
        if need != "required" and family in own:
            need = "required" if sole == [family] and not shown else "optional"
            reasons += own[family]
        if need == "not seen" and family in framework and not known and family not in stated:
            need = "unknown"
            reasons += framework[family]
        result.append(WorkloadReason(family=family, need=need, reasons=_short(reasons)))
    return tuple(result)


def _short(reasons: list[str]) -> tuple[str, ...]:
    unique = list(dict.fromkeys(reasons))
    if len(unique) <= _SHOWN:
        return tuple(unique)
    return (*unique[:_SHOWN], f"and {len(unique) - _SHOWN} more")
