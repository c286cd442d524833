"""The one-file ``zcheck.exe``: built by Windows' Python under Wine from packaging/zcheck.spec, and run there."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

import winpython as windows
from winpython import WinPython, winpython

ROOT = Path(__file__).resolve().parents[2]
__all__ = ["winpython"]
pytestmark = [pytest.mark.wine, pytest.mark.slow, pytest.mark.timeout(1200), pytest.mark.xdist_group("exe")]
# What PyInstaller needs on Windows only is named here: pip evaluates markers for this machine.
TOOLS = ("pyinstaller>=6.3", "pyinstaller-hooks-contrib", "hatchling>=1.25", "pywin32-ctypes", "altgraph", "packaging")


@pytest.fixture(scope="module")
def program(winpython: WinPython, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built program, in a folder of its own."""
    folder = tmp_path_factory.mktemp("exe")
    python = windows.build(*TOOLS) / "python.exe"
    spec = ROOT / "packaging" / "zcheck.spec"
    folders = ("--distpath", folder / "dist", "--workpath", folder / "work")
    done = winpython.wine(python, "-m", "PyInstaller", "--log-level", "ERROR", *folders, spec, timeout=1000)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / "dist" / "zcheck.exe"


def test_it_checks_explains_and_audits_without_python(winpython: WinPython, program: Path, tmp_path: Path) -> None:
    alone = {"PYTHONPATH": "", "ZCHECK_CACHE": winpython.windows_path(tmp_path / "cache")}
    shutil.copytree(ROOT / "samples", tmp_path / "samples")

    def run(*arguments: object) -> str:
        done = winpython.wine(program, *arguments, env=alone, cwd=tmp_path, timeout=200)
        assert done.returncode in (0, 1), done.stdout + done.stderr
        return done.stdout

    assert run("--version").startswith("zcheck ")
    report = json.loads(run(tmp_path / "samples" / "gemm.exe", "-f", "json"))
    assert report["target"] == "gemm.exe" and report["stacks"][0]["workload"]["gemm"] == "required"
    assert "cublasSgemm_v2" in run("explain", "cublasSgemm_v2")
    # Worker processes are the program itself, started again.
    rows = json.loads(run("audit", tmp_path / "samples", "-j", "2", "-f", "json"))["applications"]
    assert {row["path"]: row["verdict"] for row in rows}["conv.exe"] == {"v6/zluda-exe/6.4": "blocked"}
    assert not [row["path"] for row in rows if row["problem"]]
