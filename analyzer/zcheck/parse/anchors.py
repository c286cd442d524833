"""Where in a file one of several byte strings stands: one pass for all of them, at several gigabytes a second.

``ahocorasick_rs`` compares sixteen or more bytes at once. It has no wheels for some systems (musl, Windows on ARM);
there a regular expression gives the same answers, twenty times slower.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

try:
    import ahocorasick_rs
except ImportError:  # no wheel for this system
    ahocorasick_rs = None  # type: ignore[assignment]

_BLOCK = 64 * 1024
"""bytes searched at once: what is found in them is a list"""


class Anchors:
    """A set of byte strings to look for. Where two begin at one place the earlier of the sequence counts; matches do
    not overlap."""

    def __init__(self, patterns: Sequence[bytes], plain: bool = False) -> None:
        """``plain``: without the library."""
        self._longest = max(map(len, patterns))
        self._numbers = {pattern: number for number, pattern in enumerate(patterns)}
        self._expression: re.Pattern[bytes] | None = None
        if ahocorasick_rs is None or plain:
            self._expression = re.compile(b"|".join(map(re.escape, patterns)))
        else:
            leftmost = ahocorasick_rs.MatchKind.LeftmostFirst
            self._automaton = ahocorasick_rs.BytesAhoCorasick(patterns, matchkind=leftmost)

    def find(self, data: bytes, start: int, stop: int) -> Iterator[tuple[int, int]]:
        """(number of the pattern, offset) of each match that begins in ``data[start:stop]``, by offset."""
        view = memoryview(data)
        while start < stop:
            end = min(start + _BLOCK, stop)
            following = end
            for number, first, last in self._matches(view[start : end + self._longest - 1]):
                if start + first >= end:
                    break
                yield number, start + first
                following = max(end, start + last)
            start = following

    def _matches(self, view: memoryview) -> Sequence[tuple[int, int, int]]:
        if self._expression is None:
            return self._automaton.find_matches_as_indexes(view)
        return [(self._numbers[match.group()], *match.span()) for match in self._expression.finditer(view)]
