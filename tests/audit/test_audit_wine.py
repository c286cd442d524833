"""Windows' own calls under Wine: whose console it is."""

from __future__ import annotations

import json

import pytest

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
