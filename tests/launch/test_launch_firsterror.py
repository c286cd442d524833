"""The rule table finds the right first error, each rule by its own examples, and says nothing about healthy output."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcheck.errors import DataError
from zcheck.launch.firsterror import Finder, find, looks_bad, parse_rules
from zcheck.model.launch import ExitReport

TABLE = Path(__file__).resolve().parents[2] / "coverage_db" / "first_errors.yaml"
RULES = parse_rules(TABLE.read_text("utf-8"))


def ended(code: int | None, *, timed_out: bool = False) -> ExitReport:
    return ExitReport(code, "" if code is None else f"{code & 0xFFFFFFFF:#010x}", "meaning", timed_out, 1.0)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_each_rule_is_the_first_to_match_its_examples(rule) -> None:  # type: ignore[no-untyped-def]
    assert rule.examples
    assert rule.source
    for example in rule.examples:
        found = find([("stderr", example)], RULES)
        assert looks_bad(example), example
        assert found is not None, example
        assert found.rule == rule.id, example


@pytest.mark.parametrize(
    "line",
    [
        "cudaError_t status = cudaMalloc(&p, n);",
        "CUBLAS_STATUS_SUCCESS",
        "0 errors, 0 warnings",
        "Loaded cublas64_12.dll",
        "CUDA error checking is on",
        "ggml_cuda_init: found 1 CUDA devices:",
        "training error 0.03",
        "epoch 1: mean squared error: 0.5",
        "Errors: none",
        "hipError_t hipInit(unsigned flags)",
    ],
)
def test_healthy_lines_are_no_errors(line: str) -> None:
    assert find([("stdout", line)], RULES) is None


def test_the_earliest_error_wins_over_later_and_over_hints() -> None:
    lines = ["[ERROR] something", "RuntimeError: CUDA error: CUBLAS_STATUS_NOT_SUPPORTED", "ValueError: later"]
    found = find([("stderr", line) for line in lines], RULES)
    assert found is not None
    assert (found.rule, found.line) == ("cublas-status", 2)


def test_source_lines_of_a_traceback_are_not_the_error() -> None:
    text = """Traceback (most recent call last):
  File "train.py", line 3, in <module>
    raise RuntimeError("CUDA error: out of memory")  # cudaErrorMemoryAllocation
    ~~~~~~^^^
ValueError: bad batch
"""
    found = find([("stderr", line) for line in text.splitlines()], RULES)
    assert found is not None
    assert (found.rule, found.text) == ("python-exception", "ValueError: bad batch")


@pytest.mark.parametrize(
    ("code", "timed_out", "rule"),
    [
        (0, False, None),
        (0xC0000135, False, "exit-loader"),
        (0xC0000005, False, "exit-crash"),
        (0xC06D007E, False, "exit-delay-load"),
        (-11, False, "exit-signal"),
        (3, False, "exit-code"),
        (-9, True, "timeout"),
        (1, True, "timeout"),
    ],
)
def test_without_output_the_exit_says_what_happened(code: int, timed_out: bool, rule: str | None) -> None:
    found = Finder(RULES).result(ended(code, timed_out=timed_out), seconds=5)
    assert (found.rule if found else None) == rule


def test_last_stderr_line_stands_in_when_no_rule_knows_it() -> None:
    finder = Finder(RULES)
    finder.line("cannot find the flux capacitor", "stderr")
    finder.line("bye", "stdout")
    found = finder.result(ended(2), seconds=None)
    assert found is not None
    assert (found.rule, found.text) == ("last-stderr-line", "cannot find the flux capacitor")


def test_a_code_of_wine_is_read_as_what_it_stands_for() -> None:
    found = Finder(RULES).result(ended(0x35), seconds=None, wine=True)
    assert found is not None
    assert found.rule == "exit-loader"


@given(st.lists(st.text(max_size=200), max_size=30))
def test_any_output_is_taken(lines: list[str]) -> None:
    finder = Finder(RULES)
    for line in lines:
        finder.line(line, "stderr")
    finder.result(ended(1), seconds=None)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- {id: a, pattern: '(', meaning: m, source: s}", "rule a"),
        ("- {id: a, meaning: m, source: s}", "pattern"),
        ("- {id: a, pattern: x, meaning: m, source: s}\n- {id: a, pattern: y, meaning: m, source: s}", "twice"),
        ("[", "first_errors.yaml"),
    ],
)
def test_bad_tables_are_named(text: str, why: str) -> None:
    with pytest.raises(DataError, match=why):
        parse_rules(text)
