"""The first actions: a person can do them, in that order, and they name what the tables know."""

from __future__ import annotations

from pathlib import Path

import pytest

from zcheck.cli.data import coverage, rule_set
from zcheck.coverage import answer
from zcheck.judge import judge
from zcheck.match import build_context, match
from zcheck.match.loader import parse_given
from zcheck.model.report import StackReport


def _judge(given: str) -> StackReport:
    evidence, stack = parse_given(given, "test")
    answers = answer(coverage(), stack, evidence)
    context = build_context(evidence, answers)
    return judge(evidence, answers, match(rule_set(examples=False), context), context.workload)


def test_a_missing_toolkit_dll_comes_before_what_may_fail_later() -> None:
    report = _judge("entry app.exe imports cudart64_12.dll!cudaMemcpy2DAsync\nstack zluda v6, hip_sdk 6.4")
    assert "cudart64_12.dll" in report.actions[0]
    assert "zluda.exe -- app.exe" in report.actions[1]
    assert report.actions[2].startswith("If it stops")


@pytest.mark.parametrize(
    ("target", "typed"),
    [("app.exe", "zluda.exe -- app.exe"), ("_ext.pyd", "-- python.exe YOUR_SCRIPT.py"), ("core.dll", "-- PROGRAM.exe")],
)
def test_a_library_is_started_by_the_program_that_loads_it(target: str, typed: str) -> None:
    report = _judge(f"entry {target} imports nvcuda.dll!cuInit\nstack zluda v6, hip_sdk 6.4")
    assert any(typed in action for action in report.actions)
    assert not any(f"-- {target}" in action for action in report.actions if not target.endswith(".exe"))


def test_a_newer_release_is_named_only_where_it_has_the_function() -> None:
    missing = "entry app.exe imports nvcuda.dll!cuGraphicsD3D11RegisterResource"
    assert not any("v7" in a for a in _judge(f"{missing}\nstack zluda v6, hip_sdk 6.4").actions)
    found = "entry app.exe imports cusparse64_12.dll!cusparseSpMM; found bundle"
    report = _judge(f"{found}\nstack zluda v5, hip_sdk 6.4, launch_mode staged")
    fixes = [text for finding in report.findings for text in finding.fix]
    assert any("has cusparseSpMM: zcheck app.exe --zluda v7" in text for text in fixes)


def test_every_finding_of_the_examples_says_what_to_do() -> None:
    for rule in rule_set():
        for example in rule.examples:
            answers = answer(coverage(), example.stack, example.evidence)
            for finding in match([rule], build_context(example.evidence, answers)):
                assert finding.fix, f"{finding.id}, {example.name}"
                assert "{" not in "".join(finding.fix)


def test_one_cause_is_said_once_for_a_32_bit_program() -> None:
    report = _judge(
        "file app.exe role entry; machine x86\nentry app.exe imports nvcuda.dll!cuInit\nstack zluda v6, hip_sdk 6.4"
    )
    assert [f.id for f in report.findings if f.severity == "blocker"] == ["LAUNCH-32-BIT"]


def test_options_of_run_count_behind_the_program_too(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Were ``--dry-run`` behind APP handed to the program, the program would start."""
    from zcheck.cli.app import run

    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    program = Path(__file__).parents[2] / "samples" / "gemm.exe"
    run(["run", str(program), "--dry-run", "--", "--dry-run", "-x"])
    assert capsys.readouterr().out.startswith("Plan for gemm.exe")
    assert run(["run", str(program), "--nonsense"]) == 2
    assert "--nonsense" in capsys.readouterr().err


def test_names_of_one_library_are_one_finding() -> None:
    report = _judge(
        "entry app.exe looks-up nvapi64.dll\nentry app.exe looks-up nvapi.dll!nvapi_QueryInterface\n"
        "stack zluda v6, hip_sdk 6.4"
    )
    (finding,) = (f for f in report.findings if f.id == "NV-NVAPI")
    assert "nvapi64.dll, nvapi.dll" in finding.message


def test_what_keeps_a_program_without_cuda_from_starting_comes_first() -> None:
    report = _judge("entry app.exe imports helper.dll; found missing\nstack zluda v6, hip_sdk 6.4")
    assert report.verdict == "no-cuda"
    assert {finding.id for finding in report.findings} == {"BUNDLE-DLL-MISSING"}
    assert "helper.dll" in report.actions[0]
    assert report.actions[1] == "Then start it as usual: it needs no ZLUDA."
    assert len(report.actions) == 2
    plain = _judge("entry app.exe imports helper.dll; found bundle\nstack zluda v6, hip_sdk 6.4")
    assert plain.actions == ("Nothing to do: start it as usual.",)
