"""CI's own parts: nothing skips unseen, the action's steps run, the hook files are valid."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
CASES = """
import pytest
{module}

@pytest.mark.{mark}
def test_one():
    pytest.skip("the tool is missing")
"""


def outcome(folder: Path, ci: str | None, mark: str, module: str = "") -> subprocess.CompletedProcess[str]:
    """Run pytest on one skipping test under the project's conftest."""
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    (folder / "test_case.py").write_text(CASES.format(mark=mark, module=module), encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n  wine\n  browser\n  corpus\n  nvcc\n", encoding="utf-8")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", "CI"))}
    if ci is not None:
        environment["CI"] = ci
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)


@pytest.mark.parametrize("mark", ["wine", "browser", "corpus"])
def test_a_marked_test_may_not_skip_in_ci(tmp_path: Path, mark: str) -> None:
    done = outcome(tmp_path, "true", mark)
    assert done.returncode == 1
    assert "the tool is missing" in done.stdout and mark in done.stdout


@pytest.mark.parametrize(
    ("ci", "mark"),
    [(None, "wine"), ("", "wine"), ("0", "wine"), ("true", "nvcc"), ("true", "skipif(False, reason='')")],
)
def test_other_skips_stay_skips(tmp_path: Path, ci: str | None, mark: str) -> None:
    done = outcome(tmp_path, ci, mark)
    assert done.returncode == 0 and "1 skipped" in done.stdout
    assert ("1 test(s) marked nvcc were left out" in done.stdout) == (mark == "nvcc")


def test_a_module_may_not_skip_as_a_whole_in_ci(tmp_path: Path) -> None:
    assert outcome(tmp_path, "true", "wine", "pytest.importorskip('no_such_module_here')").returncode == 2


def test_ci_script_is_sane() -> None:
    script = ROOT / ".ci" / "run"
    assert os.name == "nt" or os.access(script, os.X_OK)
    bash = shutil.which("bash")
    assert bash is not None
    subprocess.run([bash, "-n", str(script)], check=True)
    assert "set -euo pipefail" in script.read_text(encoding="utf-8")


def substitute(text: str, values: dict[str, str]) -> str:
    """Fill in GitHub's ``${{ … }}`` expressions; an unknown one is an error."""
    return re.sub(r"\$\{\{ *([\w.-]+) *\}\}", lambda match: values[match.group(1)], text)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_the_action_runs(tmp_path: Path) -> None:
    """Its steps as a runner takes them: installed once, then a program that passes and one that does not."""
    action: dict[str, Any] = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    install, check = action["runs"]["steps"]
    values = {f"inputs.{name}": str(row.get("default", "")) for name, row in action["inputs"].items()}
    values |= {
        "inputs.zluda": "v6 v7-preview.9",
        "inputs.python": sys.executable,
        "github.action_path": str(ROOT),
        "runner.temp": str(tmp_path),
    }
    files = {name: tmp_path / name for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}

    def run(step: dict[str, Any]) -> subprocess.CompletedProcess[str]:
        assert step["shell"] == "bash"
        assert "${{" not in step["run"], "inputs in a script can be made to run as code"
        environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        environment |= {name: str(path) for name, path in files.items()}
        environment |= {name: substitute(value, values) for name, value in step["env"].items()}
        added = files["GITHUB_PATH"].read_text(encoding="utf-8").split()
        environment["PATH"] = os.pathsep.join([*added, os.environ["PATH"]])
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        return subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)

    for path in files.values():
        path.touch()
    done = run(install)
    assert done.returncode == 0, done.stdout + done.stderr
    for program, code in (("gemm.exe", 0), ("conv.exe", 1)):
        values["inputs.target"] = str(ROOT / "samples" / program)
        for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY"):
            files[name].write_text("", encoding="utf-8")
        done = run(check)
        assert done.returncode == code, done.stdout + done.stderr
        output = files["GITHUB_OUTPUT"].read_text(encoding="utf-8").splitlines()
        assert output == [f"exit-code={code}", "sarif-file=zcheck.sarif"]
        assert '"2.1.0"' in (tmp_path / "zcheck.sarif").read_text(encoding="utf-8")
        assert program in files["GITHUB_STEP_SUMMARY"].read_text(encoding="utf-8")


def test_hook_files_are_valid() -> None:
    from pre_commit.clientlib import load_config, load_manifest

    (hook,) = load_manifest(ROOT / ".pre-commit-hooks.yaml")
    assert load_config(ROOT / ".pre-commit-config.yaml")["repos"]
    matches = re.compile(hook["files"]).search
    assert matches("dist/App.EXE") and matches("torch_cuda.dll") and not matches("app.exe.txt")


def test_the_pre_commit_hook_judges_a_folder(tmp_path: Path) -> None:
    """As pre-commit runs it: entry and arguments, no file names, in the root of the other project."""
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["entry"] == "zcheck" and not hook["pass_filenames"]
    for program, code in (("gemm.exe", 0), ("conv.exe", 1)):
        folder = tmp_path / program
        folder.mkdir()
        for name in (program, "cudart64_12.dll"):
            shutil.copy(ROOT / "samples" / name, folder)
        command = [sys.executable, "-m", "zcheck", *hook["args"]]
        environment = {**os.environ, "PYTHONPATH": str(ROOT / "analyzer")}
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        assert done.returncode == code, done.stdout + done.stderr
