"""What several formats say in the same words: verdicts, stacks, findings merged over stacks, functions by state."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

import msgspec

from zcheck.model.base import Record
from zcheck.model.finding import SEVERITIES, Finding
from zcheck.model.report import VERDICTS, WORKLOADS, Applications, FunctionReport, Report, StackReport, Verdict

VERDICT_WORDS: dict[Verdict, str] = {
    "verified": "VERIFIED",
    "likely": "LIKELY",
    "needs-setup": "NEEDS SETUP",
    "at-risk": "AT RISK",
    "blocked": "BLOCKED",
    "unknown": "UNKNOWN",
    "no-cuda": "NO CUDA",
}
VERDICT_MEANING: dict[Verdict, str] = {
    "verified": "a recorded run of this application on this stack and GPU passed",
    "likely": "predicted loadable: nothing found that stops it; nothing was run",
    "needs-setup": "predicted loadable once the setup steps are done; nothing was run",
    "at-risk": "predicted loadable once any setup is done, but it may use something that fails or was never shown to "
    "work; nothing was run",
    "blocked": "something it certainly uses cannot work on this stack",
    "unknown": "too little could be read to judge",
    "no-cuda": "no use of CUDA was found",
}
SEVERITY_WORDS = {"blocker": "BLOCKER", "risk": "RISK", "setup": "SETUP", "note": "NOTE"}
REACH_MEANING = {
    "load": "when it starts",
    "init": "at every CUDA start",
    "called": "shown to be called",
    "use": "imported or looked up, no call was seen",
    "mention": "named, nothing shows a use",
}
# Order in which states are listed: what needs attention first.
STATES = (
    "not-exported",
    "library-missing",
    "ends-process",
    "returns-error",
    "partial",
    "no-op",
    "unknown",
    "implemented",
)
ROLE_MEANING = {
    "replaced": "the stack answers with its own library",
    "passed-through": "NVIDIA's own library runs on top of the stack's nvcuda",
    "absent": "nobody provides it",
    "system": "part of Windows",
    "bundle": "the application's own",
    "missing": "not found in the bundle",
}
_MISSING = re.compile(r"; found missing(?=;|$)")
_NAMED = re.compile(r"\((\d+): .*\)$", re.DOTALL)
DISCLAIMER = 'Read from files alone: the most it can say is "predicted loadable", never that it works.'


class Merged(Record, frozen=True):
    """A finding and the stacks (ids) it holds on."""

    finding: Finding
    stacks: tuple[str, ...]


def reports(product: Report | Applications) -> tuple[Report, ...]:
    """The reports of a product, one an application."""
    return product.applications if isinstance(product, Applications) else (product,)


def stack_label(stack: StackReport) -> str:
    """``ZLUDA v6 + HIP SDK 6.4``, with the launch mode and GPU where they are not the usual."""
    hip = "TheRock" if stack.hip_sdk == "therock" else f"HIP SDK {stack.hip_sdk}"
    mode = ", staged" if stack.launch_mode == "staged" else ""
    return f"ZLUDA {stack.zluda} + {hip}{mode}" + (f" on {stack.gpu}" if stack.gpu else "")


def short_labels(report: Report) -> dict[str, str]:
    """The shortest labels that still tell the stacks of a report apart, by stack id."""
    stacks = report.stacks
    parts = {
        s.id: [
            s.zluda,
            "staged" if s.launch_mode == "staged" else "zluda.exe",
            "TheRock" if s.hip_sdk == "therock" else f"HIP {s.hip_sdk}",
            s.gpu or "any GPU",
        ]
        for s in stacks
    }
    differs = [len({p[i] for p in parts.values()}) > 1 for i in range(4)]
    differs[0] = differs[0] or not any(differs)
    return {key: " ".join(part for part, told in zip(p, differs, strict=True) if told) for key, p in parts.items()}


def verdict_line(report: Report, stack: StackReport, target: str = "") -> str:
    """What stands behind the verdict word: target (another name for it, if given), stack and headline."""
    return f"{target or report.target}  on {stack_label(stack)}: {stack.headline}"


def meanings(stacks: Iterable[StackReport]) -> tuple[tuple[Verdict, str], ...]:
    """The verdicts of ``stacks`` with what they mean; what was ignored is no part of a prediction."""
    judged = tuple(stacks)
    told = []
    for verdict, meaning in VERDICT_MEANING.items():
        mine = [stack for stack in judged if stack.verdict == verdict]
        apart = any(finding.severity != "note" for stack in mine for finding in stack.ignored)
        if mine:
            predicted = apart and meaning.startswith("predicted")
            told.append((verdict, f"apart from what is ignored, {meaning}" if predicted else meaning))
    return tuple(told)


def by_actions(report: Report) -> tuple[tuple[tuple[str, ...], tuple[StackReport, ...]], ...]:
    """First actions, and the stacks that they are for; in the order of the stacks."""
    groups: dict[tuple[str, ...], list[StackReport]] = {}
    for stack in report.stacks:
        if stack.actions:
            groups.setdefault(stack.actions, []).append(stack)
    return tuple((actions, tuple(stacks)) for actions, stacks in groups.items())


def merged(report: Report, ignored: bool = False) -> tuple[Merged, ...]:
    """Findings of all stacks, equal ones once; the most severe first, else in the order of the stacks."""
    found: dict[str, tuple[Finding, list[str]]] = {}
    for stack in report.stacks:
        for finding in stack.ignored if ignored else stack.findings:
            message = finding.message.replace(f"ZLUDA {stack.zluda}", "ZLUDA")
            key = repr((finding.id, finding.severity, finding.module, finding.library, finding.functions, message))
            found.setdefault(key, (finding, []))[1].append(stack.id)
    release = {stack.id: stack.zluda for stack in report.stacks}
    rows = [_together(finding, tuple(dict.fromkeys(stacks)), release) for finding, stacks in found.values()]
    return tuple(sorted(rows, key=lambda row: (not row.finding.first, -SEVERITIES.index(row.finding.severity))))


def _together(finding: Finding, stacks: tuple[str, ...], release: dict[str, str]) -> Merged:
    """The finding for all its stacks; a message that differs by the release alone names each of them."""
    releases = tuple(dict.fromkeys(release[stack] for stack in stacks))
    if len(releases) > 1:
        every = f"ZLUDA {', '.join(releases)}"
        finding = msgspec.structs.replace(finding, message=finding.message.replace(f"ZLUDA {releases[0]}", every))
    return Merged(finding, stacks)


def conditional(finding: Finding) -> bool:
    """True for a blocker of which no use was seen: it blocks nothing until then, and leaves the verdict at risk."""
    return finding.severity == "blocker" and finding.reach == "use"


def severity_word(finding: Finding, words: Mapping[str, str] | None = None) -> str:
    """The severity of a finding in every format's words: ``blocker if used`` where it blocks nothing until then.

    ``words``: how the severities are written, such as ``SEVERITY_WORDS``; as they are without.
    """
    word = words[finding.severity] if words else finding.severity
    return f"{word} if used" if conditional(finding) else word


def state_word(state: str) -> str:
    """A function's state for people: ``unknown`` alone sounds like a verdict."""
    return "not in the tables" if state == "unknown" else state


def evidence_line(line: str) -> str:
    """An evidence line for people: a DLL that the program does not bring reads as no gap, since the stack may."""
    return _MISSING.sub("; not in the bundle", line)


def without_names(reason: str) -> str:
    """A replay's reason with the number of kernels in place of their names: ``… (34: _Z1a, _Z1b …)``."""
    return _NAMED.sub(lambda found: f"({plural(int(found[1]), 'kernel')})", reason)


def rule_rows(report: Report) -> tuple[tuple[Finding, dict[str, Finding]], ...]:
    """One row a rule and module: the first such finding, and the finding by stack id."""
    rows: dict[tuple[str, str | None], tuple[Finding, dict[str, Finding]]] = {}
    for row in merged(report):
        _, cells = rows.setdefault((row.finding.id, row.finding.module), (row.finding, {}))
        for stack in row.stacks:
            cells.setdefault(stack, row.finding)
    return tuple(rows.values())


def workload_words(stack: StackReport) -> dict[str, list[str]]:
    """Families by need, in the order required, optional, unknown, not seen."""
    needs = ("required", "optional", "unknown", "not seen")
    families = families_of(stack)
    grouped = {need: [family for family in families if stack.workload[family] == need] for need in needs}
    return {need: names for need, names in grouped.items() if names}


def families_of(stack: StackReport) -> list[str]:
    """The families of a stack's workload in the usual order, unusual ones behind."""
    return [f for f in WORKLOADS if f in stack.workload] + sorted(f for f in stack.workload if f not in WORKLOADS)


def by_state(functions: Iterable[FunctionReport], stack_id: str) -> dict[str, dict[str, list[FunctionReport]]]:
    """Functions by library, then by state on that stack (worst first)."""
    libraries: dict[str, dict[str, list[FunctionReport]]] = {}
    for function in functions:
        state = function.state.get(stack_id, "unknown")
        libraries.setdefault(function.library, {}).setdefault(state, []).append(function)
    return {lib: {s: states[s] for s in STATES if s in states} for lib, states in sorted(libraries.items())}


def worst(stacks: Iterable[StackReport]) -> Verdict | None:
    """The most severe verdict of several stacks; None without any."""
    seen = {stack.verdict for stack in stacks}
    return next((verdict for verdict in VERDICTS if verdict in seen), None)


def counts(product: Applications) -> dict[Verdict, int]:
    """Applications by their worst verdict, the most severe first."""
    seen = [worst(report.stacks) or "unknown" for report in product.applications]
    return {verdict: seen.count(verdict) for verdict in VERDICTS if verdict in seen}


def replay_words(kernels: int, loadable: int, dropped: int, stub: int, empty: int, lost: int) -> str:
    """One clause on what a release does with device code: counts of kernels."""
    parts = [f"{loadable} of {kernels} kernels loadable"]
    parts += [
        f"{n} {word}"
        for n, word in (
            (dropped, "dropped"),
            (lost, "lost with their module"),
            (stub, "only stubs"),
            (empty, "without PTX"),
        )
        if n
    ]
    return ", ".join(parts)


def plural(count: int, one: str, many: str | None = None) -> str:
    """``1 file``, ``2 files``."""
    return f"{count} {one if count == 1 else many or one + 's'}"
