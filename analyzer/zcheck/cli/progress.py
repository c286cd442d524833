"""Progress on stderr, after a second, where a person is looking."""

from __future__ import annotations

import sys
import time

_AFTER = 1.0
_EVERY = 0.2


class Progress:
    """Counts steps; shows the current one on one line that is wiped at the end. Silent when stderr is no terminal."""

    def __init__(self, what: str = "reading") -> None:
        """``what`` is the verb in front of the step's name."""
        self._what = what
        self._start = time.monotonic()
        self._shown = 0.0
        self._count = 0
        self._on = sys.stderr.isatty()

    def step(self, name: str) -> None:
        """One more file (or application) is begun."""
        self._count += 1
        now = time.monotonic()
        if not self._on or now - self._start < _AFTER or now - self._shown < _EVERY:
            return
        self._shown = now
        safe = "".join(char if char.isprintable() and char.isascii() else "?" for char in name)[-50:]
        sys.stderr.write(f"\r\x1b[K{self._what} {self._count}: {safe}")
        sys.stderr.flush()

    def done(self) -> None:
        """Wipe the line."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")
            sys.stderr.flush()
            self._shown = 0.0
