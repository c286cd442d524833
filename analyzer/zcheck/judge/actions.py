"""The first actions: what to do now, most useful first."""

from __future__ import annotations

from collections.abc import Sequence

from zcheck.model.finding import Finding
from zcheck.model.report import Verdict
from zcheck.model.stack import Answers
from zcheck.model.text import start_command

_MOST = 5
_AT_START = ("load", "init")


def first_actions(verdict: Verdict, findings: Sequence[Finding], answers: Answers, target: str) -> tuple[str, ...]:
    """At most five actions: an own AMD path first, then host causes, then what decided the verdict, then the start."""
    if verdict == "no-cuda":
        return _without_cuda(findings)
    actions: list[str] = []
    own = [finding for finding in findings if finding.area == "own-path"]
    deciding = [finding for finding in findings if finding.severity != "note" and finding.area != "own-path"]
    if verdict == "unknown":
        deciding = [finding for finding in findings if finding.limitation] or deciding
    if verdict == "blocked":
        deciding = [
            f for f in deciding if f.severity == "blocker" and f.reach in ("load", "init", "called")
        ] or deciding
    # What has to be in place before anything can start comes before what may go wrong later.
    deciding.sort(key=lambda finding: finding.severity != "setup" or finding.reach not in _AT_START)
    for finding in (*own, *deciding):
        # One line for each finding first; the second-best advice of one cause must not hide the next cause.
        if finding.fix and finding.fix[0] not in actions:
            actions.append(finding.fix[0])
    if len(actions) < _MOST and verdict == "blocked":
        actions += [text for finding in deciding[:1] for text in finding.fix[1:] if text not in actions]
    actions = actions[:_MOST]
    if verdict in ("likely", "needs-setup", "verified", "at-risk") and len(actions) < _MOST:
        # "If it stops with …" makes sense only after the start.
        then = [text for text in actions if text.startswith("If ")]
        actions = [*(text for text in actions if text not in then), start(answers, target), *then]
    return tuple(actions)


def _without_cuda(findings: Sequence[Finding]) -> tuple[str, ...]:
    """For a program that has no use for ZLUDA: what keeps it from starting all the same comes before the start."""
    stops = [f for f in findings if f.severity != "note" and f.reach != "mention" and f.area != "own-path"]
    first = dict.fromkeys(text for finding in stops for text in finding.fix[:1])
    if not first:
        return ("Nothing to do: start it as usual.",)
    return (*tuple(first)[: _MOST - 1], "Then start it as usual: it needs no ZLUDA.")


def start(answers: Answers, target: str) -> str:
    """How the program is started on this stack."""
    stack = answers.stack
    launcher = answers.capabilities.get("launcher", "zluda.exe")
    sdk = "an AMD TheRock build" if stack.hip_sdk == "therock" else f"HIP SDK {answers.sdk_release or stack.hip_sdk}"
    name = start_command(target)
    what = "it" if target.lower().endswith(".exe") else f"the program that loads {target}"
    if stack.launch_mode == "staged":
        return f"With {sdk} installed and the files of ZLUDA {stack.zluda} placed beside the program, start {name}."
    return f"With {sdk} installed, start {what} from the ZLUDA {stack.zluda} folder: {launcher} -- {name}"
