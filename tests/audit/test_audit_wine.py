"""Windows' own calls under Wine: whose console it is, and paths beyond 260 characters."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from audit_programs import GEMM, program

from winpython import WinPython, winpython

__all__ = ["winpython"]
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


def test_an_audit_below_a_long_path(winpython: WinPython, tmp_path: Path) -> None:
    deep = tmp_path
    for _ in range(12):
        deep = deep / ("folder" * 4)
    program(deep / "tool" / "tool.exe", GEMM)
    assert len(str(deep)) > 260
    done = winpython.python(
        "-m", "zcheck", "audit", winpython.windows_path(deep), "-f", "json", "-j", "1", "--no-cache"
    )
    (row,) = json.loads(done.stdout)["applications"]
    assert row["path"] == "tool/tool.exe"
    assert row["problem"] == "" and set(row["verdict"].values()) == {"likely"}
