"""Each format of each sample, byte for byte; ``pytest --snapshot-update`` writes the golden files anew."""

from __future__ import annotations

from typing import Any

import pytest
import sample_reports
from syrupy.assertion import SnapshotAssertion
from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode

from zcheck.render import FORMATS, RedactionNames, RenderOptions, render

NAMES = RedactionNames(users=("Zoë Quinn",), machines=("GAMING-PC",), homes=("C:\\Users\\Zoë Quinn",))
TEXTS = {
    "80": RenderOptions(width=80, names=NAMES),
    "60-tree": RenderOptions(width=60, tree=True, names=NAMES),
    "60-ascii-tree": RenderOptions(width=60, tree=True, ascii_only=True, names=NAMES),
    "100-color-verbose": RenderOptions(width=100, tree=True, verbose=True, color=True, names=NAMES),
}


class OneFile(SingleFileSnapshotExtension):
    """A golden file of its own for each snapshot, as text."""

    _write_mode = WriteMode.TEXT
    file_extension = "txt"


@pytest.mark.parametrize("name", sorted(sample_reports.SAMPLES))
@pytest.mark.parametrize("look", sorted(TEXTS))
def test_text_is_as_recorded(name: str, look: str, snapshot: SnapshotAssertion) -> None:
    text = render(sample_reports.SAMPLES[name](), "text", TEXTS[look])
    assert text == snapshot(extension_class=OneFile, name=f"{name}-{look}")


@pytest.mark.parametrize("name", sorted(sample_reports.SAMPLES))
@pytest.mark.parametrize("fmt", sorted(set(FORMATS) - {"text", "html"}))
def test_format_is_as_recorded(name: str, fmt: str, snapshot: SnapshotAssertion) -> None:
    text = render(sample_reports.SAMPLES[name](), fmt, RenderOptions(names=NAMES))
    assert text == snapshot(extension_class=OneFile, name=f"{name}-{fmt}")


@pytest.mark.parametrize("name", ["blocked_conv", "applications"])
def test_body_of_the_page_is_as_recorded(name: str, snapshot: SnapshotAssertion) -> None:
    page = render(sample_reports.SAMPLES[name](), "html", RenderOptions(names=NAMES))
    body = page[page.index("<main") : page.index("</footer>")]
    assert body == snapshot(extension_class=OneFile, name=f"{name}-html")


def test_verdict_comes_first(sample: Any) -> None:
    """The first line says verdict, target and stack: scripts and people read it without the rest."""
    first = render(sample, "text", RenderOptions(width=200)).splitlines()[0]
    if hasattr(sample, "applications"):
        # Of a folder: how many programs, and how many of each verdict.
        assert first == "3 programs in tools: 1 blocked, 1 unknown, 1 no cuda"
        return
    report = sample
    stack = report.stacks[0]
    assert (
        first.split("  ")[0]
        == {"blocked": "BLOCKED", "likely": "LIKELY", "unknown": "UNKNOWN", "no-cuda": "NO CUDA"}[stack.verdict]
    )
    assert f"{report.target}  on ZLUDA {stack.zluda} + HIP SDK 6.4" in first and first.endswith(f": {stack.headline}")
