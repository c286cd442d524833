"""The README says what the program does."""

from __future__ import annotations

import importlib.util
import re
from pathlib import Path
from types import ModuleType
from typing import get_args

import pytest

from zcheck import errors
from zcheck.model import report
from zcheck.render import FORMATS

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def readme() -> ModuleType:
    spec = importlib.util.spec_from_file_location("readme", ROOT / ".ci" / "readme.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def section(title: str) -> str:
    """The text between one heading and the next."""
    match = re.search(rf"^#+ {re.escape(title)}\n(.*?)(?=^#+ |\Z)", README, re.MULTILINE | re.DOTALL)
    assert match is not None, title
    return match.group(1)


def first_column(title: str) -> list[str]:
    """First cells of the table of a section, without header and quotes."""
    rows = [line.split("|")[1].strip().strip("`") for line in section(title).splitlines() if line.startswith("|")]
    return rows[2:]


@pytest.mark.parametrize("name", ["install", "test"])
def test_commands_are_one_line_for_each_shell(readme: ModuleType, name: str) -> None:
    bash, powershell = readme.command(README, "bash", name), readme.command(README, "powershell", name)
    assert " && " in bash and "-m venv" in bash
    assert "&&" not in powershell and "||" not in powershell, "PowerShell 5 has neither"
    assert "-m venv" in powershell and powershell.count("if ($?) {") == 2


def test_both_shells_do_the_same(readme: ModuleType) -> None:
    for name in ("install", "test"):
        bash = readme.command(README, "bash", name).replace("python3", "python").split(" && ")
        powershell = readme.command(README, "powershell", name).split("; ")
        steps = [re.sub(r"^if \(\$\?\) \{ (.*) \}$", r"\1", step) for step in powershell]
        assert [step.replace("\\Scripts\\", "/bin/").replace("\\", "/") for step in steps] == bash


def test_ci_runs_the_commands_of_the_readme() -> None:
    ci = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    for name in ("install", "test"):
        assert f"readme.py command bash {name}" in ci


def test_the_help_text_is_the_programs(readme: ModuleType) -> None:
    assert len(readme.HELP.findall(README)) == 2
    assert readme.with_help(README) == README, "python .ci/readme.py help --write"


def test_exit_codes_are_the_programs() -> None:
    codes = {value for name, value in vars(errors).items() if name.startswith("EXIT_") and name != "EXIT_RUN_REFUSED"}
    assert {int(cell) for cell in first_column("Exit codes")} == codes


def test_formats_are_the_programs() -> None:
    named = {name for cell in first_column("Formats") for name in re.split("`, `", cell)}
    assert named == set(FORMATS)
    for row in FORMATS.values():
        assert importlib.util.find_spec(f"zcheck.render.{row.module}"), row.module


def test_verdicts_are_the_programs() -> None:
    assert set(first_column("Verdicts")) == set(get_args(report.Verdict))
