"""``zcheck ab``: the published example, the rank test against other ways of counting, what is dropped."""

from __future__ import annotations

import csv
import itertools
import json
import random
import statistics
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from zcheck.cli.ab import _values
from zcheck.cli.ab import ab as verb
from zcheck.errors import UsageError
from zcheck.launch.ab import change, compare, interleaved, metric_values, rank_test, sample

RUNS = Path(__file__).resolve().parents[2] / "coverage_db" / "reports" / "measurements.csv"


def test_the_published_example() -> None:
    assert change(13278, 12876) == -3.03
    rows = list(csv.DictReader(RUNS.open(encoding="utf-8")))
    upstream, overlay = (next(r for r in rows if r["variant"] == v) for v in ("upstream", "custom overlay"))
    assert change(float(upstream["median"]), float(overlay["median"])) == float(overlay["change_percent"])


def test_the_published_example_from_logs(tmp_path: Path) -> None:
    """Two trials of five iterations a side, the first of each dropped, medians as published."""
    import typer

    def log(name: str, values: list[int]) -> str:
        path = tmp_path / name
        path.write_text("".join(f"iteration {n}: {value:,} steps/s\n" for n, value in enumerate(values)))
        return str(path)

    app = typer.Typer()
    app.command()(verb)
    a = [log("a1", [9000, 13250, 13270, 13290, 13301]), log("a2", [9100, 13240, 13286, 13268, 13299])]
    b = [log("b1", [8000, 12850, 12870, 12890, 12901]), log("b2", [8100, 12840, 12882, 12868, 12899])]
    options = [x for path in a for x in ("--a-log", path)] + [x for path in b for x in ("--b-log", path)]
    result = CliRunner().invoke(app, ["--metric", r"([0-9,]+) steps/s", "--format", "json", *options])
    assert result.exit_code == 0, result.output
    report = json.loads(result.output)
    assert (report["a"]["median"], report["b"]["median"]) == (13278, 12876)
    assert report["change"] == -3.03
    assert report["a"]["dropped"] == [9000, 9100]
    assert report["exact"] is True
    assert report["p"] == pytest.approx(2 / 12870)  # all of one side above all of the other, C(16, 8) ways


def _by_enumeration(a: list[float], b: list[float]) -> float:
    """Two-sided p by dealing the values out in every way."""
    values = [*a, *b]
    ordered = sorted(values)
    rank = {v: statistics.mean(i + 1 for i, w in enumerate(ordered) if w == v) for v in values}
    middle = len(a) * (len(values) + 1) / 2
    seen = abs(sum(rank[v] for v in a) - middle)
    sums = [sum(rank[values[i]] for i in chosen) for chosen in itertools.combinations(range(len(values)), len(a))]
    return sum(abs(total - middle) >= seen - 1e-9 for total in sums) / len(sums)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 6), min_size=1, max_size=6), st.lists(st.integers(0, 6), min_size=1, max_size=6))
def test_rank_test_agrees_with_enumeration(a: list[int], b: list[int]) -> None:
    _, p, exact = rank_test(a, b)
    assert exact
    assert p == pytest.approx(_by_enumeration([float(x) for x in a], [float(x) for x in b]))


def test_large_samples_use_the_approximation_near_the_exact_value() -> None:
    source = random.Random(1)
    a, b = [source.gauss(0, 1) for _ in range(200)], [source.gauss(0.2, 1) for _ in range(200)]
    _, p, exact = rank_test(a, b)
    assert not exact
    from statistics import NormalDist

    wins = sum((x > y) + 0.5 * (x == y) for x in a for y in b)
    z = (abs(wins - 20000) - 0.5) / (200 * 200 * 401 / 12) ** 0.5
    assert p == pytest.approx(2 * (1 - NormalDist().cdf(z)), rel=1e-6)


def test_equal_samples_show_nothing() -> None:
    report = compare("m", sample("A", [1.0] * 5), sample("B", [1.0] * 5))
    assert (report.change, report.p) == (0.0, 1.0)


def test_order_is_interleaved_and_balanced() -> None:
    order = [side for _, side in interleaved(4)]
    assert order == list("ABBAABBA")


def test_what_is_dropped() -> None:
    assert _values([[1, 2, 3], [4, 5]], "iteration") == ([2, 3, 5], [1, 4])
    assert _values([[1], [2], [3]], "iteration") == ([2, 3], [1])
    assert _values([[1, 2], [3]], "run") == ([3], [1, 2])
    assert _values([[1], [2]], "none") == ([1, 2], [])


@pytest.mark.parametrize("pattern", ["(", "steps", "(x+)"])
def test_bad_metrics_are_refused(pattern: str) -> None:
    with pytest.raises(UsageError, match="metric"):
        metric_values("xx steps", pattern)


def test_no_value_is_an_error() -> None:
    with pytest.raises(UsageError, match="no value"):
        sample("A", [])
