"""Progress of an audit on stderr: how many, how fast, how long it will still take."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import TextIO

_AFTER = 1.0
_EVERY = 0.25
_EVERY_PLAIN = 30.0
_ENTRY_BYTES = 2_000_000
"""what one program costs beside its bytes, in bytes: so that an estimate does not rest on bytes or counts alone"""


class AuditProgress:
    """A line that is rewritten on a terminal; elsewhere a line every half minute: a log shows that it goes on."""

    def __init__(
        self,
        total: int,
        work: int,
        stream: TextIO | None = None,
        clock: Callable[[], float] = time.monotonic,
        quiet: bool = False,
    ) -> None:
        """``total`` pieces of together ``work`` (see ``weight``)."""
        self.total, self.work = total, max(1, work)
        self.count = self.done_work = 0
        self._stream = stream or sys.stderr
        self._clock = clock
        self._start = self._shown = clock()
        self._tty = self._stream.isatty()
        self._quiet = quiet
        self._warm = 0
        self._wiped = True

    def step(self, work: int, warm: bool = False) -> None:
        """One piece of that much work is done; ``warm`` when the cache had it."""
        self.count += 1
        self.done_work += work
        self._warm += warm
        now = self._clock()
        every = _EVERY if self._tty else _EVERY_PLAIN
        if self._quiet or now - self._start < _AFTER or now - self._shown < every:
            return
        self._shown = now
        text = self.line(now)
        self._stream.write(f"\r\x1b[K{text}" if self._tty else f"{text}\n")
        self._stream.flush()
        self._wiped = not self._tty

    def line(self, now: float) -> str:
        """``audit: 120 of 4,000 (3 %), 15.2 per second, about 4 min left``."""
        elapsed = max(1e-6, now - self._start)
        share = min(1.0, self.done_work / self.work)
        text = f"audit: {self.count:,} of {self.total:,} ({share:.0%}), {self.count / elapsed:.1f} per second"
        if 0.0 < share < 1.0:
            text += f", about {_duration(elapsed * (1 - share) / share)} left"
        return text + (f", {self._warm:,} unchanged since an earlier run" if self._warm else "")

    def close(self) -> None:
        """Wipe the line."""
        if not self._wiped:
            self._stream.write("\r\x1b[K")
            self._stream.flush()
            self._wiped = True


def weight(size: int, entries: int) -> int:
    """The work of a piece: its bytes and its programs."""
    return size + entries * _ENTRY_BYTES


def _duration(seconds: float) -> str:
    if seconds < 90:
        return f"{max(1, round(seconds))} s"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min"
    return f"{seconds / 3600:.1f} h"
