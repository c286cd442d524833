"""zcheck.toml, environment variables, baselines."""

from __future__ import annotations

import datetime
import json
from pathlib import Path

import pytest
from audit_programs import CONV, GEMM, audit, program
from hypothesis import given
from hypothesis import strategies as st

from zcheck.cli import config
from zcheck.cli.app import run
from zcheck.errors import DataError

RULE = "DNN-CONV-NO-MIOPEN"


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "settings" / "zcheck.toml"
    path.parent.mkdir()
    monkeypatch.setenv("ZCHECK_CONFIG", str(path))
    return path


def check(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, dict[str, object]]:
    code = run([*map(str, arguments), "-f", "json"])
    return code, json.loads(capsys.readouterr().out)


def test_an_ignored_blocker_stays_visible_and_does_not_decide(
    settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = program(tmp_path / "app" / "conv.exe", CONV)
    settings.write_text(f'ignore = [{{id = "{RULE}", module = "CONV.*", reason = "we bring MIOpen along"}}]')
    code, report = check(capsys, app)
    (stack,) = report["stacks"]  # type: ignore[misc]
    assert code == 0 and stack["verdict"] == "likely"
    assert [finding["id"] for finding in stack["ignored"]] == [RULE]
    assert "we bring MIOpen along" in stack["ignored"][0]["message"]
    assert RULE not in [finding["id"] for finding in stack["findings"]]
    run([str(app)])
    assert "we bring MIOpen along" in capsys.readouterr().out
    code, out, _ = audit(capsys, tmp_path / "app", "-j", 1)
    assert code == 0 and "Ignored" in out and RULE in out
    settings.write_text(f'ignore = [{{id = "{RULE}", module = "other.dll", reason = "elsewhere"}}]')
    assert check(capsys, app)[0] == 1


def test_an_ignore_ends_with_its_day_and_that_is_said(
    settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = program(tmp_path / "app" / "conv.exe", CONV)
    today = datetime.date.today()
    settings.write_text(f'ignore = [{{id = "{RULE}", reason = "for now", until = {today}}}]')
    assert check(capsys, app)[0] == 0
    settings.write_text(f'ignore = [{{id = "{RULE}", reason = "for now", until = {today - datetime.timedelta(1)}}}]')
    code, report = check(capsys, app)
    assert code == 1
    assert any("for now" in said for said in report["assumptions"])  # type: ignore[attr-defined]
    run([str(app)])
    assert "for now" in capsys.readouterr().out.replace("\n", " ")
    code, out, _ = audit(capsys, tmp_path / "app", "-j", 1)
    assert code == 1 and "for now" in out


def test_stacks_and_level_of_the_file_give_way_to_the_command_line(
    settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    app = program(tmp_path / "app" / "conv.exe", CONV)
    settings.write_text(
        'stacks = ["therock", "v5/zluda-exe/6.4", {zluda = "v6", hip-sdk = "6.4", gpu = "gfx1100"}]\nfail-on = "never"'
    )
    code, report = check(capsys, app)
    ids = [stack["id"] for stack in report["stacks"]]  # type: ignore[attr-defined]
    assert code == 0 and len(ids) == 3 and ids[1:] == ["v5/zluda-exe/6.4", "v6/zluda-exe/6.4/gfx1100"]
    code, report = check(capsys, app, "--zluda", "v6", "--fail-on", "blocker")
    assert code == 1 and [stack["id"] for stack in report["stacks"]] == ["v6/zluda-exe/6.4"]  # type: ignore[attr-defined]
    monkeypatch.setenv("ZCHECK_ZLUDA", "v4 v5")
    monkeypatch.setenv("ZCHECK_FAIL_ON", "blocker")
    _, report = check(capsys, app)
    assert [stack["zluda"] for stack in report["stacks"]] == ["v4", "v5"]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ignores = []", "did you mean ignore"),
        ('ignore = [{id = "X"}]', "reason"),
        ('ignore = [{id = "X", reason = "r", until = "soon"}]', "no date"),
        ('ignore = [{id = "X", reason = "r", why = "r"}]', "no key 'why'"),
        ("ignore = {}", "list"),
        ('fail-on = "all"', "fail-on"),
        ("stacks = [1]", "stack"),
        ('stacks = ["a/b"]', "no id"),
        ("stacks = [{zludo = 'v6'}]", "zludo"),
        ("= broken", "zcheck.toml"),
    ],
)
def test_mistakes_are_told_with_file_and_key(text: str, said: str) -> None:
    with pytest.raises(DataError) as caught:
        config.parse(text, "zcheck.toml")
    assert "zcheck.toml" in caught.value.message and said in caught.value.message


@given(st.text())
def test_any_text_is_settings_or_a_data_error(text: str) -> None:
    try:
        config.parse(text, "zcheck.toml")
    except DataError as error:
        assert "zcheck.toml" in error.message


def test_an_unknown_rule_is_said(settings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    app = program(tmp_path / "app" / "conv.exe", CONV)
    settings.write_text('ignore = [{id = "DNN-CONV-NO-MIOPENN", reason = "typo"}]')
    _, report = check(capsys, app)
    assert any(f"did you mean {RULE}" in said for said in report["assumptions"])  # type: ignore[attr-defined]


def test_the_file_of_the_current_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ZCHECK_CONFIG")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "zcheck.toml").write_text('fail-on = "never"')
    assert config.find() == Path("zcheck.toml")
    assert run([str(program(tmp_path / "conv.exe", CONV))]) == 0


def test_a_baseline_lets_known_findings_pass_and_new_ones_fail(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    app = program(tmp_path / "app" / "conv.exe", CONV)
    known, many = tmp_path / "known.json", tmp_path / "many.json"
    assert run([str(app), "-o", f"json={known}"]) == 1
    assert audit(capsys, app.parent, "-j", 1, "-o", f"json={many}")[0] == 1
    code, report = check(capsys, app, "--baseline", known)
    assert code == 0 and report["stacks"][0]["verdict"] == "blocked"  # type: ignore[index]
    assert audit(capsys, app.parent, "-j", 1, "--baseline", many)[0] == 0
    program(app, {**CONV, "nvcuda.dll": ["cuGraphicsD3D11RegisterResource"]})  # a blocker at load comes along
    assert check(capsys, app, "--baseline", known)[0] == 1
    assert audit(capsys, app.parent, "-j", 1, "--baseline", many)[0] == 1
    program(app.parent / "other.exe", GEMM)
    assert run([str(app), "--baseline", str(tmp_path / "none.json")]) == 2
    assert audit(capsys, app.parent, "-j", 1, "--baseline", known)[0] == 2


def test_a_bare_word_among_the_stacks_is_a_named_stack_or_a_release() -> None:
    from zcheck.cli.config import parse, stacks
    from zcheck.cli.data import coverage

    found = stacks(coverage(), parse('stacks = ["therock", "v7-preview.9"]', "zcheck.toml"))
    assert [(stack.zluda, stack.hip_sdk) for stack in found] == [("v6", "therock"), ("v7-preview.9", "6.4")]
