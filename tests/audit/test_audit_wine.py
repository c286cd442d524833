"""Audits on Windows, under Wine: whose console it is, and paths that are longer than usual."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from winpython import WinPython, winpython

__all__ = ["winpython"]
SAMPLES = Path(__file__).resolve().parents[2] / "samples"
pytestmark = [pytest.mark.wine, pytest.mark.slow]


def test_the_console_is_asked(winpython: WinPython) -> None:
    code = (
        "import json; from zcheck.cli.dropped import console_images, own_window; found = console_images();"
        "print(json.dumps([found, own_window(found)]))"
    )
    done = winpython.python("-c", code)
    images, own = json.loads(done.stdout.splitlines()[-1])
    # Wine may start it without a console; then nothing is taken for a window of our own.
    assert own is bool(images) or any("python" not in image.lower() for image in images)
    assert all(image.lower().endswith(".exe") or image == "unknown" for image in images)


def test_paths_longer_than_windows_takes_by_itself(winpython: WinPython) -> None:
    share = winpython.drive_c / "share"
    deep = share.joinpath(*(f"folder{number:02}{'x' * 30}" for number in range(8)))
    deep.mkdir(parents=True)
    shutil.copy(SAMPLES / "gemm.exe", deep)
    try:
        assert len(winpython.windows_path(deep / "gemm.exe")) > 300
        checked = winpython.python("-m", "zcheck", "check", deep / "gemm.exe", "-f", "json", timeout=200)
        assert json.loads(checked.stdout)["stacks"][0]["workload"]["gemm"] == "required", checked.stderr
        for jobs in ("1", "2"):
            done = winpython.python("-m", "zcheck", "audit", share, "-j", jobs, "-f", "json", timeout=200)
            (row,) = json.loads(done.stdout)["applications"]
            assert row["path"].endswith("/gemm.exe") and not row["problem"], done.stderr
    finally:
        shutil.rmtree(share)
