"""Two samples of one measure compared: medians, spread, difference in percent, exact rank test."""

from __future__ import annotations

import math
import re
import statistics
from collections.abc import Sequence

from zcheck.errors import UsageError
from zcheck.model.base import Record

_EXACT = 400_000
"""subsets times sums up to which the rank test counts exactly"""


class Sample(Record, frozen=True, omit_defaults=False):
    """One side: the values that count, in the order they came, and what was left out."""

    name: str
    values: tuple[float, ...]
    dropped: tuple[float, ...]
    failed: int
    median: float
    minimum: float
    maximum: float
    quartiles: tuple[float, float] | None


class AbReport(Record, frozen=True, omit_defaults=False):
    """``change``: B's median against A's in percent. ``p``: two-sided, Mann-Whitney; ``exact`` or approximated."""

    metric: str
    a: Sample
    b: Sample
    change: float
    u: float
    p: float
    exact: bool
    notes: tuple[str, ...] = ()


def metric_values(text: str, pattern: str) -> list[float]:
    """All values of the metric in an output: group 1 of the pattern, or ``value``; raises UsageError."""
    try:
        found = re.compile(pattern, re.MULTILINE)
    except re.error as error:
        raise UsageError(f"--metric {pattern!r} is no regular expression: {error}") from None
    if not found.groups:
        raise UsageError(f"--metric {pattern!r} needs a group around the number, such as '([0-9.]+) steps/s'")
    group: str | int = "value" if "value" in found.groupindex else 1
    values = []
    for match in found.finditer(text):
        try:
            value = float((match[group] or "").replace(",", "").replace("_", ""))
        except ValueError:
            raise UsageError(f"--metric: {match[group]!r} is no number") from None
        if math.isfinite(value):
            values.append(value)
    return values


def sample(name: str, values: Sequence[float], dropped: Sequence[float] = (), failed: int = 0) -> Sample:
    """Median and spread of at least one value; raises UsageError."""
    if not values:
        raise UsageError(f"{name}: no value of the metric was seen")
    quartiles = None
    if len(values) > 1:
        cut = statistics.quantiles(values, n=4, method="inclusive")
        quartiles = (cut[0], cut[2])
    return Sample(
        name, tuple(values), tuple(dropped), failed, statistics.median(values), min(values), max(values), quartiles
    )


def change(a: float, b: float) -> float:
    """B against A in percent, rounded to hundredths; raises UsageError for a zero base."""
    if not a:
        raise UsageError("the median of A is 0: a difference in percent has no meaning")
    return round((b - a) / a * 100, 2)


def _ranks(values: Sequence[float]) -> list[float]:
    """Mid-ranks, from 1."""
    order = sorted(range(len(values)), key=values.__getitem__)
    ranks = [0.0] * len(values)
    at = 0
    while at < len(order):
        end = at
        while end + 1 < len(order) and values[order[end + 1]] == values[order[at]]:
            end += 1
        for index in order[at : end + 1]:
            ranks[index] = (at + end) / 2 + 1
        at = end + 1
    return ranks


def rank_test(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, bool]:
    """Mann and Whitney's U of A, the two-sided p, and whether it was counted exactly (ties included).

    Exact: over all ways to deal the joint mid-ranks out, counted by dynamic programming over twice the ranks; else the
    normal approximation with tie and continuity correction (H. B. Mann, D. R. Whitney, 1947).
    """
    ranks = _ranks([*a, *b])
    n, m = len(a), len(b)
    rank_sum = sum(ranks[:n])
    u = rank_sum - n * (n + 1) / 2
    if (n + m) * n * (n + m) * (n + m + 1) <= _EXACT * 10:
        return u, _exact([round(2 * rank) for rank in ranks], n, round(2 * rank_sum)), True
    ties = sum(t**3 - t for t in (ranks.count(rank) for rank in set(ranks)))
    total = n + m
    variance = n * m / 12 * ((total + 1) - ties / (total * (total - 1)))
    if not variance:
        return u, 1.0, False
    z = max(abs(u - n * m / 2) - 0.5, 0) / math.sqrt(variance)
    return u, min(1.0, math.erfc(z / math.sqrt(2))), False


def _exact(doubled: Sequence[int], n: int, seen: int) -> float:
    counts: list[dict[int, int]] = [{} for _ in range(n + 1)]
    counts[0][0] = 1
    for rank in doubled:
        for size in range(n, 0, -1):
            for total, ways in counts[size - 1].items():
                counts[size][total + rank] = counts[size].get(total + rank, 0) + ways
    middle = n * sum(doubled) / len(doubled)
    distance = abs(seen - middle)
    ways_all = sum(counts[n].values())
    extreme = sum(ways for total, ways in counts[n].items() if abs(total - middle) >= distance - 1e-9)
    return extreme / ways_all


def compare(metric: str, a: Sample, b: Sample) -> AbReport:
    """The comparison of two samples."""
    u, p, exact = rank_test(a.values, b.values)
    notes = []
    if min(len(a.values), len(b.values)) < 4:
        notes.append("fewer than four values a side cannot show a difference at the 5 % level")
    if a.failed or b.failed:
        notes.append(f"runs that failed and count for nothing: {a.failed} of A, {b.failed} of B")
    return AbReport(metric, a, b, change(a.median, b.median), u, p, exact, tuple(notes))


def interleaved(runs: int) -> list[tuple[int, str]]:
    """Order of the runs: A B, B A, A B …, so that warming up and cooling down fall on both sides alike."""
    order = []
    for number in range(runs):
        order += [(number, side) for side in ("AB" if number % 2 == 0 else "BA")]
    return order
