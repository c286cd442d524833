"""``zcheck diff``: better, worse, same, for verdicts, findings and functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import sample_reports
import typer
from sample_reports import THEROCK, V6
from syrupy.assertion import SnapshotAssertion
from typer.testing import CliRunner

from zcheck.cli.diff import diff as diff_verb
from zcheck.cli.schema import schema as schema_verb
from zcheck.errors import InputError, UsageError
from zcheck.model.diff import ENTRY, compare
from zcheck.model.report import FunctionReport, Report
from zcheck.render import RenderOptions, render, render_diff, schema

app = typer.Typer()
app.command("diff")(diff_verb)
app.command("schema")(schema_verb)


def changed(report: Report, stack: int = 0, **changes: Any) -> Report:
    """The report with changes in one stack."""
    stacks = list(report.stacks)
    stacks[stack] = msgspec.structs.replace(stacks[stack], **changes)
    return msgspec.structs.replace(report, stacks=tuple(stacks))


def only(report: Report, stack: int) -> Report:
    return msgspec.structs.replace(report, stacks=(report.stacks[stack],))


def test_a_report_against_itself_is_the_same(sample: Any) -> None:
    result = compare(sample, sample)
    assert (result.worse, result.better, result.changed) == (0, 0, 0)
    assert render_diff(result, "text").startswith("SAME  ")


def test_two_stacks_of_one_report() -> None:
    report = sample_reports.blocked_conv()
    result = compare(report, report, (V6, THEROCK))
    (stack,) = result.applications[0].stacks
    assert (stack.verdict.before, stack.verdict.after, stack.verdict.change) == ("blocked", "needs-setup", "better")
    found = {delta.subject: delta.change for delta in stack.findings}
    assert found == {"DNN-CONV-NO-MIOPEN": "better", "STACK-HIP-PATH": "worse", "BLAS-PARTIAL": "same"}
    functions = {delta.subject: delta.change for delta in stack.functions}
    assert functions["cudnn9!cudnnConvolutionForward"] == "better" and functions["cublas!cublasGemmEx"] == "same"
    back = compare(report, report, (THEROCK, V6))
    assert (back.worse, back.better) == (result.better, result.worse)


def test_single_stacks_are_paired_whatever_their_ids() -> None:
    report = sample_reports.blocked_conv()
    result = compare(only(report, 0), only(report, 1))
    assert [(s.a, s.b) for s in result.applications[0].stacks] == [(V6, THEROCK)]


def test_stacks_of_one_side_only_are_named() -> None:
    report = sample_reports.blocked_conv()
    result = compare(report, only(report, 0))
    (application,) = result.applications
    assert [s.a for s in application.stacks] == [V6] and application.only_a == (THEROCK,)
    assert "only in the first report: " + THEROCK in render_diff(result, "text")


@pytest.mark.parametrize(
    ("before", "after", "change"),
    [
        ("likely", "verified", "better"),
        ("at-risk", "blocked", "worse"),
        ("unknown", "blocked", "worse"),
        ("likely", "unknown", "worse"),
        ("no-cuda", "likely", "changed"),
        ("blocked", "no-cuda", "changed"),
    ],
)
def test_verdicts(before: str, after: str, change: str) -> None:
    report = sample_reports.no_cuda()
    result = compare(changed(report, verdict=before), changed(report, verdict=after))
    assert result.applications[0].stacks[0].verdict.change == change


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ([{}], [], "better"),
        ([], [{}], "worse"),
        ([], [{"severity": "note"}], "changed"),
        ([{"severity": "risk"}], [{}], "worse"),
        ([{"reach": "use"}], [{}], "worse"),
        ([{}], [{"reach": "mention"}], "better"),
        ([{}], [{"functions": ("cudnnConvolutionForward", "cudnnConvolutionBackwardData")}], "worse"),
        ([{"functions": ("a", "b")}], [{"functions": ("b",)}], "better"),
        ([{"functions": ("a",)}], [{"functions": ("b",)}], "changed"),
        ([{"message": "said otherwise"}], [{}], "same"),
    ],
)
def test_findings(old: list[dict[str, Any]], new: list[dict[str, Any]], change: str) -> None:
    report = only(sample_reports.blocked_conv(), 0)

    def side(changes: list[dict[str, Any]]) -> Report:
        return changed(report, findings=tuple(msgspec.structs.replace(sample_reports.CONV, **c) for c in changes))

    (delta,) = compare(side(old), side(new)).applications[0].stacks[0].findings
    assert delta.change == change


def test_a_renamed_program_is_the_same_program() -> None:
    old = only(sample_reports.blocked_conv(), 0)
    text = render(old, "json").replace("upscale.exe", "upscale-2.2.exe")
    from zcheck.render import from_json

    result = compare(old, from_json(text))
    assert result.worse == result.better == 0
    assert {d.module for d in result.applications[0].stacks[0].findings} == {ENTRY}


@pytest.mark.parametrize(
    ("old", "new", "change"),
    [
        ("implemented", "partial", "worse"),
        ("not-exported", "returns-error", "better"),
        ("not-exported", "library-missing", "changed"),
        (None, "implemented", "changed"),
        (None, "ends-process", "worse"),
        ("returns-error", None, "better"),
        ("implemented", None, "changed"),
    ],
)
def test_functions(old: str | None, new: str | None, change: str) -> None:
    report = sample_reports.no_cuda()

    def side(state: Any) -> Report:
        made = (
            () if state is None else (FunctionReport("cufft", "cufftExecC2C", "import", ("viewer.exe",), {V6: state}),)
        )
        return msgspec.structs.replace(report, functions=made)

    (delta,) = compare(side(old), side(new)).applications[0].stacks[0].functions
    assert delta.change == change


def test_folders_are_paired_by_program() -> None:
    folder = sample_reports.applications()
    smaller = msgspec.structs.replace(folder, applications=folder.applications[1:])
    result = compare(folder, smaller)
    assert result.only_a == ("upscale.exe",) and [a.a for a in result.applications] == ["setup.exe", "viewer.exe"]
    assert [a.a for a in compare(folder, sample_reports.no_cuda()).applications] == ["viewer.exe"]
    with pytest.raises(UsageError, match="no application in common"):
        compare(folder, sample_reports.likely_gemm())


def test_nothing_to_pair_is_told() -> None:
    report = sample_reports.blocked_conv()
    other = changed(changed(report, 0, id="x"), 1, id="y")
    with pytest.raises(UsageError, match="--stacks"):
        compare(report, other)
    with pytest.raises(UsageError, match="no stack 'z'"):
        compare(report, other, ("z", "y"))


@pytest.mark.parametrize("fmt", ["text", "json"])
def test_difference_is_as_recorded(fmt: str, snapshot: SnapshotAssertion) -> None:
    report = sample_reports.blocked_conv()
    assert render_diff(compare(report, report, (V6, THEROCK)), fmt) == snapshot


def test_hostile_names_stay_harmless() -> None:
    report = sample_reports.hostile()
    result = compare(report, changed(report, findings=()))
    for fmt in ("text", "json"):
        text = render_diff(result, fmt, RenderOptions(verbose=True))
        assert not {"\x1b", "\u202e", "\x00", "\x07"} & set(text)


def save(path: Path, report: Any) -> str:
    path.write_text(render(report, "json"), encoding="utf-8")
    return str(path)


def test_verb_exits_with_1_only_when_worse(tmp_path: Path) -> None:
    report = sample_reports.blocked_conv()
    good, bad = (
        save(tmp_path / "good.json", only(report, 1)),
        save(tmp_path / "bad.json", changed(only(report, 1), verdict="blocked")),
    )
    run = CliRunner()
    assert run.invoke(app, ["diff", good, good]).exit_code == 0
    assert run.invoke(app, ["diff", bad, good]).exit_code == 0
    worse = run.invoke(app, ["diff", good, bad])
    assert worse.exit_code == 1 and worse.stdout.startswith("WORSE  upscale.exe")
    counted = json.loads(run.invoke(app, ["diff", good, bad, "--format", "json"]).stdout)
    assert (counted["worse"], counted["better"]) == (1, 0)


def test_verb_compares_two_stacks_of_one_report(tmp_path: Path) -> None:
    path = save(tmp_path / "r.json", sample_reports.blocked_conv())
    plain = CliRunner().invoke(app, ["diff", path])
    named = CliRunner().invoke(app, ["diff", path, "--stacks", V6, THEROCK])
    assert plain.exit_code == named.exit_code == 1 and plain.stdout == named.stdout
    one = save(tmp_path / "one.json", sample_reports.no_cuda())
    result = CliRunner().invoke(app, ["diff", one])
    assert isinstance(result.exception, UsageError) and "--stacks" in result.exception.message


def test_verb_names_the_file_it_cannot_read(tmp_path: Path) -> None:
    path = tmp_path / "no.json"
    for prepare in (lambda: None, path.mkdir):
        prepare()
        result = CliRunner().invoke(app, ["diff", str(path), str(path)])
        assert isinstance(result.exception, InputError) and result.exception.message.startswith(f"{path}: ")
    result = CliRunner().invoke(app, ["diff", str(path), str(path), "--format", "html"])
    assert isinstance(result.exception, UsageError)


def test_verb_prints_the_schema() -> None:
    result = CliRunner().invoke(app, ["schema"])
    assert result.exit_code == 0 and json.loads(result.stdout) == schema()
