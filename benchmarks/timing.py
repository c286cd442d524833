"""What the benchmarks share: the median time of several runs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable


def median_seconds(action: Callable[[], object], rounds: int, warm: bool = False) -> float:
    """Median wall time of ``action`` in seconds; ``warm``: after one run that is not counted."""
    if warm:
        action()
    taken = []
    for _ in range(rounds):
        start = time.perf_counter()
        action()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def median_ms(action: Callable[[], object], rounds: int, warm: bool = False) -> float:
    """The same in milliseconds."""
    return 1000 * median_seconds(action, rounds, warm)
