"""The verdict for one stack (design section 3, "Verdict" and "Fine points")."""

from __future__ import annotations

from collections.abc import Sequence

from zcheck.judge.actions import first_actions
from zcheck.model.evidence import DeviceCode, Evidence, Limitation
from zcheck.model.finding import Finding
from zcheck.model.report import StackReport, Verdict, WorkloadReason
from zcheck.model.stack import Answers

SURE = ("load", "init", "called")


def judge(
    evidence: Evidence,
    answers: Answers,
    findings: Sequence[Finding],
    workload: Sequence[WorkloadReason],
    ignored: Sequence[Finding] = (),
) -> StackReport:
    """The verdict, workload, actions and findings of one stack.

    A recorded run counts only for this very stack, GPU included: passed turns at-risk and likely into verified.
    """
    stack = answers.stack
    verdict = _verdict(evidence, answers, findings)
    headline = _headline(verdict, evidence, findings, workload, ignored)
    if verdict == "unknown" and not answers.release_read:
        headline = f"{_PLAIN[verdict]}: the files of ZLUDA {stack.zluda} were never read, so nothing is known of it"
    elif verdict == "no-cuda" and any(use.kind == "mention" for use in evidence.uses()):
        headline = "names of CUDA stand in it, but nothing shows that it uses them"
    return StackReport(
        id=stack.id,
        zluda=stack.zluda,
        launch_mode=stack.launch_mode,
        hip_sdk=stack.hip_sdk,
        gpu=stack.gpu,
        verdict=verdict,
        headline=headline,
        workload={reason.family: reason.need for reason in workload},
        workload_reasons=tuple(workload),
        actions=first_actions(verdict, findings, answers, evidence.target),
        findings=tuple(findings),
        ignored=tuple(ignored),
    )


def cuda_seen(evidence: Evidence, answers: Answers) -> bool:
    """True when anything of CUDA was read: a CUDA library in use (a mention in a text is none), or device code."""
    cuda = {library.dll.lower() for library in answers.libraries if library.library != "torch"}
    used = any(use.kind != "mention" and use.dll.lower() in cuda for use in evidence.uses())
    return used or any(isinstance(item, DeviceCode) and (item.containers or item.kernels) for item in evidence.items)


def _verdict(evidence: Evidence, answers: Answers, findings: Sequence[Finding]) -> Verdict:
    run = evidence.newest_run(answers.stack)
    passed = run is not None and run.outcome == "passed"
    if any(finding.severity == "blocker" and finding.reach in SURE for finding in findings):
        return "blocked"
    seen = cuda_seen(evidence, answers)
    if seen and not answers.release_read:
        return "unknown"
    limited = any(isinstance(item, Limitation) for item in evidence.items) or any(f.limitation for f in findings)
    itself = any(isinstance(item, Limitation) and item.kind == "vendor-library" for item in evidence.items)
    if itself or (limited and not _judgeable(evidence, answers)):
        return "unknown"
    if not seen:
        return "no-cuda"
    severities = {finding.severity for finding in findings if finding.reach != "mention"}
    if severities & {"blocker", "risk"}:
        return "verified" if passed else "at-risk"
    if "setup" in severities:
        return "needs-setup"
    return "verified" if passed else "likely"


def _judgeable(evidence: Evidence, answers: Answers) -> bool:
    """True when CUDA evidence was read that is more than a library's name in a string, and that is not the rest of an
    import table that a packer leaves (UPX keeps one function of each DLL)."""
    if any(isinstance(item, DeviceCode) and item.kernels for item in evidence.items):
        return True
    packed = {item.module for item in evidence.items if isinstance(item, Limitation) and item.kind == "packed"}
    cuda = {library.dll.lower() for library in answers.libraries if library.library != "torch"}
    return any(
        use.dll.lower() in cuda
        and use.kind != "mention"
        and (use.function or use.kind != "dynamic")
        and use.module not in packed
        for use in evidence.uses()
    )


_PLAIN: dict[Verdict, str] = {
    "verified": "a recorded run of this application on this stack and GPU passed",
    "likely": "predicted loadable: no gap was found in what it uses; only a run can show that it works",
    "needs-setup": "predicted loadable after the setup below; only a run can show that it works",
    "at-risk": "it may start, but it may use something that fails or was never shown to work here",
    "unknown": "cannot be judged from what could be read",
    "no-cuda": "nothing of CUDA was found in it, so ZLUDA changes nothing for it",
    "blocked": "it cannot work on this stack",
}


def _headline(
    verdict: Verdict,
    evidence: Evidence,
    findings: Sequence[Finding],
    workload: Sequence[WorkloadReason],
    ignored: Sequence[Finding],
) -> str:
    if verdict == "blocked":
        sure = [finding for finding in findings if finding.severity == "blocker" and finding.reach in SURE]
        more = f" (and {len(sure) - 1} more)" if len(sure) > 1 else ""
        return f"{sure[0].title}{more}"
    if verdict == "unknown":
        limits = [finding for finding in findings if finding.limitation]
        return f"{_PLAIN[verdict]}: {limits[0].title}" if limits else _PLAIN[verdict]
    plain = _apart(ignored) + _PLAIN[verdict]
    if verdict == "at-risk":
        if any(finding.severity == "setup" and finding.reach != "mention" for finding in findings):
            # A DLL that is missing stops any start.
            plain = f"{_apart(ignored)}once the setup is done {_PLAIN[verdict]}"
        # What has to be set up is no risk, though it may stand first.
        top = next((f for f in findings if f.severity in ("blocker", "risk") and f.reach != "mention"), None)
        return f"{plain}: {top.title}" if top is not None else plain
    if verdict in ("likely", "needs-setup"):
        needed = [reason.family for reason in workload if reason.need in ("required", "optional")]
        if needed == ["gemm"]:
            return f"{plain}; of compute libraries it uses matrix products (GEMM) only"
        return plain
    return _PLAIN[verdict]


def _apart(ignored: Sequence[Finding]) -> str:
    """What a prediction leaves out: findings that would have counted, had nobody ignored them."""
    count = sum(finding.severity != "note" for finding in ignored)
    return f"apart from {count} ignored finding{'s' if count > 1 else ''}, " if count else ""
