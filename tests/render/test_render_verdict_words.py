"""The sentence behind a verdict says no more than the findings do."""

from __future__ import annotations

import datetime

import pytest

from zcheck.cli.data import coverage, rule_set
from zcheck.cli.ignores import Ignore, split
from zcheck.coverage import answer
from zcheck.judge import Judged, build_report, judge
from zcheck.match import build_context, match
from zcheck.match.loader import parse_given
from zcheck.model.report import Report
from zcheck.render import RenderOptions, render

PEOPLE = ("text", "markdown", "issue", "html")
CONV = "entry app.exe imports cudnn64_9.dll!cudnnConvolutionForward"
ASYNC = "entry app.exe imports nvcuda.dll!cuMemAllocAsync"


def judged(given: str, *ignored: str) -> Report:
    """The report on evidence lines, findings of the rules ``ignored`` set aside."""
    evidence, stack = parse_given(f"{given}\nstack zluda v6, hip_sdk 6.4", "test")
    answers = answer(coverage(), stack, evidence)
    context = build_context(evidence, answers)
    ignores = [Ignore(id=rule, reason="we bring it along") for rule in ignored]
    kept, aside, _ = split(match(rule_set(), context), ignores, datetime.date(2026, 12, 1))
    one = Judged(answers, judge(evidence, answers, kept, context.workload, aside))
    return build_report(
        version="0.1.0", database="2026-11-30", target="app.exe", graph=None, facts={}, evidence=evidence, judged=[one]
    )


def text(report: Report, fmt: str) -> str:
    return " ".join(render(report, fmt, RenderOptions(width=1000, verbose=True)).split())


@pytest.mark.parametrize("fmt", PEOPLE)
def test_what_is_ignored_is_no_part_of_a_prediction(fmt: str) -> None:
    report = judged(CONV, "DNN-CONV-NO-MIOPEN")
    assert report.stacks[0].verdict == "likely"
    assert "apart from 1 ignored finding, predicted loadable: no gap" in text(report, fmt)
    if fmt in ("text", "html"):  # they explain the word
        assert "apart from what is ignored, predicted loadable: nothing found that stops it" in text(report, fmt)
    assert "apart from" not in text(judged("entry app.exe imports nvcuda.dll!cuInit"), fmt)


def test_an_ignored_note_is_not_missed_in_a_prediction() -> None:
    given = "entry app.exe imports nvcuda.dll!cuLaunchKernel"
    (note,) = judged(given).stacks[0].findings
    assert note.severity == "note"
    (stack,) = judged(given, note.id).stacks
    assert stack.ignored and "apart from" not in stack.headline


def test_at_risk_says_may_use_in_sentence_and_legend() -> None:
    report = judged(ASYNC)
    (stack,) = report.stacks
    assert stack.verdict == "at-risk"
    assert stack.headline.startswith("it may start, but it may use something that fails or was never shown to work")
    assert "once any setup is done, but it may use something that fails or was never shown to work;" in text(
        report, "text"
    )


def test_nothing_starts_before_its_setup_is_done() -> None:
    (stack,) = judged(f"{ASYNC}\nentry app.exe imports helper.dll; found missing").stacks
    assert stack.verdict == "at-risk" and any(finding.severity == "setup" for finding in stack.findings)
    assert stack.headline.startswith("once the setup is done it may start, but it may use something that fails")
    risk = next(finding for finding in stack.findings if finding.severity in ("blocker", "risk"))
    assert stack.headline.endswith(f": {risk.title}")  # what has to be set up is not what may fail
