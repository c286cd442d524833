"""Evidence under a finding: counted right, and in words that people take the right way."""

from __future__ import annotations

import json

import msgspec
import pytest
import sample_reports

from zcheck.cli.data import coverage, rule_set
from zcheck.coverage import answer
from zcheck.match import build_context, match
from zcheck.match.loader import parse_given
from zcheck.model.finding import Finding
from zcheck.model.report import Report
from zcheck.render import RenderOptions, render


def many() -> Finding:
    """The finding on a DLL that nobody brings, of which 28 functions are imported."""
    calls = "".join(f"entry app.exe imports absent.dll!call{number:02}; found missing\n" for number in range(28))
    evidence, stack = parse_given(
        f"{calls}entry app.exe imports nvcuda.dll!cuInit\nstack zluda v6, hip_sdk 6.4", "test"
    )
    context = build_context(evidence, answer(coverage(), stack, evidence))
    (found,) = (finding for finding in match(rule_set(), context) if len(finding.evidence) > 8)
    return found


def report(finding: Finding) -> Report:
    base = sample_reports.unknown_packed()
    return msgspec.structs.replace(base, stacks=(msgspec.structs.replace(base.stacks[0], findings=(finding,)),))


def test_lines_left_out_are_counted_and_are_no_line_of_evidence() -> None:
    finding = many()
    assert (len(finding.evidence), finding.evidence_left) == (20, 8)
    assert all(line.startswith("entry ") for line in finding.evidence)
    (stack,) = json.loads(render(report(finding), "json"))["stacks"]
    assert stack["findings"][0]["evidence"] == list(finding.evidence) and stack["findings"][0]["evidence_left"] == 8


def test_every_format_for_people_counts_right() -> None:
    product = report(many())
    short, full = (render(product, "text", RenderOptions(width=200, verbose=verbose)) for verbose in (False, True))
    assert short.count("absent.dll!") == 2 and "18 more with --verbose, 8 more with --evidence" in short
    assert full.count("absent.dll!") == 20 and "  8 more with --evidence" in full and "--verbose" not in full
    for fmt in ("markdown", "issue"):
        assert "* Evidence: 20 more lines" in render(product, fmt)
    assert "</code>8 more lines</dd>" in render(product, "html")
    assert "!call19; found missing / and 8 more" in render(product, "csv")


@pytest.mark.parametrize("fmt", ["text", "markdown", "issue", "html"])
def test_a_dll_that_the_program_does_not_bring_is_no_gap_for_people(fmt: str) -> None:
    text = " ".join(render(report(many()), fmt, RenderOptions(width=200)).split())
    assert "absent.dll!call00; not in the bundle" in text.replace("&#33;", "!").replace("&#59;", ";")
    assert "found missing" not in text


def test_machines_keep_the_vocabulary_of_evidence() -> None:
    for fmt in ("json", "sarif", "csv"):
        assert "absent.dll!call00; found missing" in render(report(many()), fmt)
