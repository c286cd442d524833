"""From the report on one program to its row of an audit."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from zcheck.cli.audit_rows import joined_versions
from zcheck.model.audit import AuditFinding, AuditRow
from zcheck.model.finding import REACHES, SEVERITIES
from zcheck.model.report import Report, StackReport

if TYPE_CHECKING:
    from zcheck.cli.audit_task import Task
    from zcheck.cli.entry import Analysis


def place_of(task: Task, path: str) -> str:
    """A path of the application, relative to the audited folder."""
    return f"{task.place}/{path}" if task.place else path


def broken_row(task: Task, entry: str, reason: str) -> AuditRow:
    """The row of a program that could not be read."""
    from zcheck.model.text import shown

    ids = [stack.id for stack in task.stacks]
    return AuditRow(
        path=place_of(task, entry),
        application=task.place,
        kind=task.kind,
        programs=(entry,),
        verdict=dict.fromkeys(ids, "unknown"),
        workload={},
        top_cause=shown(reason),
        cause_id="",
        causes=dict.fromkeys(ids, ""),
        first_action="Look whether the file is whole; it could not be read.",
        blockers=dict.fromkeys(ids, 0),
        risks=dict.fromkeys(ids, 0),
        cuda="",
        frameworks=(),
        size=task.size,
        files=task.files,
        problem=shown(reason),
    )


def row_of(task: Task, entry: str, analysis: Analysis, report: Report) -> AuditRow:
    """The row of one program."""
    from zcheck.cli.entry import is_cuda

    first = report.stacks[0]
    decides = {stack.id: _deciding(stack) for stack in report.stacks}
    cause = decides[first.id]
    return AuditRow(
        path=place_of(task, entry),
        application=task.place,
        kind=task.kind,
        programs=(entry,),
        verdict={stack.id: stack.verdict for stack in report.stacks},
        workload=dict(first.workload),
        top_cause=cause.title if cause else "",
        cause_id=cause.id if cause else "",
        causes={key: found.id if found else "" for key, found in decides.items()},
        first_action=first.actions[0] if first.actions else "",
        blockers={stack.id: sum(f.severity == "blocker" for f in stack.findings) for stack in report.stacks},
        risks={stack.id: sum(f.severity == "risk" for f in stack.findings) for stack in report.stacks},
        cuda=cuda_version(analysis),
        frameworks=report.frameworks,
        size=task.size,
        files=task.files,
        findings=_findings(report),
        vendor=is_cuda(entry.rpartition("/")[2]),
    )


def _deciding(stack: StackReport) -> AuditFinding | None:
    """The finding behind a verdict: the surest blocker, else the first risk or setup step, or the limitation."""
    if stack.verdict in ("no-cuda", "likely", "verified"):
        return None
    findings = list(stack.findings)
    if stack.verdict == "unknown":
        findings = [f for f in findings if f.limitation] or findings
    if stack.verdict == "blocked":
        sure = ("load", "init", "called")
        findings = [f for f in findings if f.severity == "blocker" and f.reach in sure] or findings
    if not findings or (stack.verdict != "unknown" and all(f.severity == "note" for f in findings)):
        return None
    # A finding that comes first because the PC fails before the program stays first; the sort keeps order else.
    best = max(findings, key=lambda f: (f.first, SEVERITIES.index(f.severity), REACHES.index(f.reach)))
    return AuditFinding(best.id, best.title, best.reach, {stack.id: best.severity})


def _findings(report: Report) -> tuple[AuditFinding, ...]:
    found: dict[tuple[str, bool], AuditFinding] = {}
    for stack in report.stacks:
        for ignored, findings in ((False, stack.findings), (True, stack.ignored)):
            for finding in findings:
                old = found.get((finding.id, ignored))
                severity = dict(old.severity) if old else {}
                reach = finding.reach
                if old and REACHES.index(old.reach) > REACHES.index(reach):
                    reach = old.reach
                if SEVERITIES.index(finding.severity) >= SEVERITIES.index(severity.get(stack.id, "note")):
                    severity[stack.id] = finding.severity
                found[(finding.id, ignored)] = AuditFinding(finding.id, finding.title, reach, severity, ignored)
    order = sorted(found.values(), key=lambda f: (-max(SEVERITIES.index(s) for s in f.severity.values()), f.id))
    return tuple(order)


_LINKED = re.compile(r"CUDA runtime (\d+\.\d+)[\d.]*(?: to (\d+\.\d+)[\d.]*)? is linked in")
_RUNTIME = re.compile(r"(?:lib)?cudart(?:64|32)?_\d+(?:_\d+)?\.dll", re.I)
_DLL = re.compile(r"(?:lib)?(cudart|cublas|cublaslt|nvrtc)(?:64|32)?_(\d+)(?:_\d+)?\.dll", re.I)


def cuda_version(analysis: Analysis) -> str:
    """The CUDA version that a program was built with: of its runtime (major.minor), else as far as DLL names tell.

    A runtime that is linked in may be one of several versions: then from which to which (``12.8 to 12.9``).
    """
    from zcheck.coverage.measured import runtime_version
    from zcheck.model.evidence import FileFact, Framework, Use

    names: set[str] = set()
    said: list[str] = []
    runtimes: set[str] = set()
    for item in analysis.evidence.items:
        if isinstance(item, Framework) and item.cuda:
            said.append(item.cuda)
        elif isinstance(item, FileFact):
            names.add(item.name)
            if _RUNTIME.fullmatch(item.name):  # what the file says of itself, before its name: one name for all 11.x
                version = runtime_version("", item.version, item.description)
                runtimes.add(".".join(version.split(".")[:2]))
        elif isinstance(item, Use):
            if linked := _LINKED.match(item.because):
                runtimes.add(_range(linked[1], linked[2] or linked[1]))
            if item.kind != "mention":
                names.add(item.dll)
    exact = [*said, *(version for version in runtimes if version)]
    return joined_versions(exact or [v for name in names if (v := _of_name(name))])


def _range(oldest: str, newest: str) -> str:
    return oldest if oldest == newest else f"{oldest} to {newest}"


def _of_name(dll: str) -> str:
    """What NVIDIA's names tell for sure: ``cublas64_12.dll`` → 12, ``cudart64_102.dll`` → 10.2, ``cudart64_92.dll`` →
    9.2; ``cudart64_110.dll`` → 11 and ``nvrtc64_120_0.dll`` → 12, for since CUDA 11 later ones keep a name."""
    match = _DLL.fullmatch(dll)
    if match is None:
        return ""
    digits = match.group(2)
    if digits[0] == "1" and (len(digits) < 3 or digits >= "11"):
        return digits[:2]
    return digits if len(digits) < 2 else f"{digits[:-1]}.{digits[-1]}"
