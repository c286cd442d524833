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
DENSE = 8192
"""matches in a block that no program has, only a text that repeats one of the byte strings"""


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
        for block in self.blocks(data, start, stop):
            yield from block

    def blocks(self, data: bytes, start: int, stop: int, most: int = _BLOCK) -> Iterator[list[tuple[int, int]]]:
        """The same as a list for each 64 KiB, so that a caller can leave out where too much is found: where there are
        more than ``most``, one more than these is given."""
        view = memoryview(data)
        while start < stop:
            end = min(start + _BLOCK, stop)
            found = self._matches(view[start : end + self._longest - 1])
            following = end
            if found and start + found[-1][2] > end:  # the last ones may begin or end in the next block
                found = [match for match in found if start + match[1] < end]
                following = max(end, start + found[-1][2]) if found else end
            yield [(number, start + first) for number, first, _ in found[: most + 1]]
            start = following

    def present(self, data: bytes) -> set[int]:
        """The numbers of the patterns that are there."""
        seen: set[int] = set()
        for block in self.blocks(data, 0, len(data), DENSE):
            seen.update(number for number, _ in block)
            if len(block) > DENSE:  # a text made of it: from here on each pattern by itself, up to its first place
                at = block[0][1]
                return seen | {number for pattern, number in self._numbers.items() if data.find(pattern, at) >= 0}
        return seen

    def _matches(self, view: memoryview) -> list[tuple[int, int, int]]:
        if self._expression is None:
            return self._automaton.find_matches_as_indexes(view)
        return [(self._numbers[match.group()], *match.span()) for match in self._expression.finditer(view)]
