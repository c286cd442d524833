"""Text on narrow, colourless and old terminals."""

from __future__ import annotations

import io
import re
from typing import Any

import msgspec
import pytest
import sample_reports

from zcheck.render import RenderOptions, render, terminal_options


class Terminal(io.TextIOWrapper):
    """A stream of a chosen encoding that says it is a terminal, or not."""

    def __init__(self, encoding: str, tty: bool) -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self.tty = tty

    def isatty(self) -> bool:
        return self.tty


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_no_line_is_wider_than_asked(sample: Any, width: int, ascii_only: bool) -> None:
    text = render(sample, "text", RenderOptions(width=width, tree=True, ascii_only=ascii_only))
    assert max(map(len, text.splitlines())) <= width
    assert not [line for line in text.splitlines() if line != line.rstrip()]


@pytest.mark.parametrize("ascii_only", [False, True])
def test_nothing_is_lost_when_it_is_narrow(sample: Any, ascii_only: bool) -> None:
    """Wrapping folds, it never cuts: without blanks and rules the letters of ids and fixes are all there."""
    text = re.sub(r"[\s|│─+-]", "", render(sample, "text", RenderOptions(width=40, ascii_only=ascii_only)))
    for report in getattr(sample, "applications", (sample,)):
        for stack in report.stacks:
            for finding in stack.findings:
                for part in (finding.title, *finding.fix, *finding.functions):
                    assert re.sub(r"[\s|│─+-]", "", part) in text


def test_escape_codes_only_with_colour(sample: Any) -> None:
    assert "\x1b" not in render(sample, "text", RenderOptions(color=False))
    colored = render(sample, "text", RenderOptions(color=True))
    assert "\x1b[" in colored
    assert re.sub(r"\x1b\[[0-9;]*m", "", colored).split() == render(sample, "text", RenderOptions()).split()


@pytest.mark.parametrize(
    ("encoding", "tty", "env", "columns", "color", "ascii_only", "width"),
    [
        ("utf-8", True, {}, 120, True, False, 120),
        ("utf-8", True, {"NO_COLOR": "1"}, 80, False, False, 80),
        ("utf-8", True, {"TERM": "dumb"}, 80, False, False, 80),
        ("cp437", True, {}, 80, True, True, 80),
        ("cp1252", True, {"NO_COLOR": "1"}, 60, False, True, 60),
        ("utf-8", False, {}, 80, False, False, 100),
        ("utf-8", False, {"FORCE_COLOR": "1"}, None, True, False, 100),
        ("utf-8", False, {"FORCE_COLOR": "1", "NO_COLOR": "1"}, None, False, False, 100),
        ("utf-8", False, {"COLUMNS": "60"}, None, False, False, 60),
        ("ascii", True, {"COLUMNS": "7"}, 80, True, True, 40),
    ],
)
def test_options_suit_the_terminal(
    encoding: str, tty: bool, env: dict[str, str], columns: int | None, color: bool, ascii_only: bool, width: int
) -> None:
    options = terminal_options(Terminal(encoding, tty), env, columns)
    assert (options.color, options.ascii_only, options.width) == (color, ascii_only, width)


def test_the_users_choice_of_colour_wins() -> None:
    assert terminal_options(Terminal("utf-8", False), {"NO_COLOR": "1"}, color=True).color
    assert not terminal_options(Terminal("utf-8", True), {"FORCE_COLOR": "1"}, color=False).color


@pytest.mark.parametrize("encoding", ["cp437", "cp1252", "ascii"])
def test_old_code_pages_can_print_it(sample: Any, encoding: str) -> None:
    options = terminal_options(Terminal(encoding, True), {}, 80)
    render(sample, "text", options).encode(encoding)


def test_many_notes_are_told_shortly_but_all() -> None:
    base = sample_reports.unknown_packed()
    notes = tuple(
        msgspec.structs.replace(sample_reports.GEMM_LIMIT, id=f"NOTE-{i}", module=f"m{i}.dll") for i in range(40)
    )
    report = msgspec.structs.replace(base, stacks=(msgspec.structs.replace(base.stacks[0], findings=notes),))
    short, full = (render(report, "text", RenderOptions(verbose=verbose)) for verbose in (False, True))
    assert all(f"NOTE-{i}" in short for i in range(40)) and len(short) < len(full) / 2


def test_a_graph_with_cycles_and_deep_chains_has_a_tree() -> None:
    from zcheck.model.report import EdgeReport

    chain = [EdgeReport(f"m{i}.dll", f"m{i + 1}.dll", "import", (), "", "high") for i in range(3_000)]
    loop = [
        EdgeReport("m3000.dll", "m0.dll", "import", (), "", "high"),
        EdgeReport("m5.dll", "m5.dll", "import", (), "", "high"),
    ]
    report = sample_reports.report("m0.dll", (), edges=tuple(chain + loop))
    text = render(report, "text", RenderOptions(width=80, tree=True))
    assert "shown above" in text
