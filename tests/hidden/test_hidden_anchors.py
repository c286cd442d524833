"""Byte strings found in one pass: against the plain search, at the edges of blocks, in dense text."""

from __future__ import annotations

import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from zcheck.cli.hidden import name_tables
from zcheck.parse import anchors, strings
from zcheck.parse.anchors import Anchors

PATTERNS = (b"cu", b"c\0u", b"ncc", b"nccu", b".d", b"abca", b"\x50\xed\x55\xba")
BOTH = [pytest.param(plain, id="re" if plain else "library") for plain in (False, True)]
PIECES = st.lists(st.sampled_from([*PATTERNS, b"c", b"u", b"n", b"\0", b"a", b"bca", b".", b"x" * 7]), max_size=60)


def by_hand(data: bytes, start: int, stop: int) -> list[tuple[int, int]]:
    """Leftmost first, without overlaps, one offset after another."""
    found, at = [], start
    while at < stop:
        number = next((n for n, pattern in enumerate(PATTERNS) if data.startswith(pattern, at)), None)
        if number is None:
            at += 1
        else:
            found.append((number, at))
            at += len(PATTERNS[number])
    return found


def test_the_library_is_here() -> None:
    assert anchors.ahocorasick_rs is not None, "the tests have to run with the library"


@pytest.mark.parametrize("plain", BOTH)
@given(pieces=PIECES, cut=st.tuples(st.integers(0, 40), st.integers(0, 40)), block=st.integers(1, 30))
def test_all_matches_are_found_in_blocks_of_any_size(
    plain: bool, pieces: list[bytes], cut: tuple[int, int], block: int
) -> None:
    data = b"".join(pieces)
    start, stop = min(cut[0], len(data)), max(len(data) - cut[1], 0)
    before = anchors._BLOCK
    anchors._BLOCK = block
    try:
        assert list(Anchors(PATTERNS, plain).find(data, start, stop)) == by_hand(data, start, stop)
    finally:
        anchors._BLOCK = before


WORDS = (
    "cudaMalloc", "ncc", "ncclSend", "nccuInit", "nvml", "cu", "\0", " ", ".dll", "64_", "12",
    "optixQueryFunctionTable", "NvAPI", "X", "cublas64_12.DLL",
)  # fmt: skip


@given(words=st.lists(st.sampled_from(WORDS), max_size=30), wide=st.booleans())
def test_tokens_are_the_same_without_the_library(words: list[str], wide: bool) -> None:
    data = "".join(words).encode("utf-16-le" if wide else "ascii") + b"\0\0"
    found = list(strings.piece_tokens(data, 0, len(data), 0))
    library = strings._ANCHORS
    strings._ANCHORS = Anchors(tuple(library._numbers), plain=True)
    try:
        assert list(strings.piece_tokens(data, 0, len(data), 0)) == found
    finally:
        strings._ANCHORS = library


@pytest.mark.parametrize("text", [b"\0nccuInitialise\0", "\0nccuInitialise\0".encode("utf-16-le")])
def test_an_anchor_that_another_one_hides_is_looked_at(text: bytes) -> None:
    found = {token.text for token in strings.piece_tokens(text, 0, len(text), 0)}
    assert "nccuInitialise" in found


def test_names_that_run_into_each_other_behind_ncc_are_found() -> None:
    text = b"lorem ipsum " * 20 + b"nccudaMalloc" + b" dolor sit amet" * 20
    assert any("cudaMalloc" in token.text and token.joined for token in strings.piece_tokens(text, 0, len(text), 0))


def test_a_text_that_repeats_an_anchor_is_left_out_and_told() -> None:
    text = b"\0cudaMalloc\0" + b"cu" * (1 << 18) + b"\0cudaFree\0"
    dense: list[int] = []
    found = {token.text for token in strings.piece_tokens(text, 0, len(text), 0, dense)}
    assert dense and "cudaFree" in found
    facts = strings.scan_file(io.BytesIO(text), "a.dll", None, name_tables())
    assert any(problem.partial and "repeat" in problem.reason for problem in facts.problems)


def test_presence_is_told_for_dense_texts_too() -> None:
    anchors = Anchors((b"::", b"bar.red", b"rare"))
    assert anchors.present(b"::" * 100_000 + b"bar.red") == {0, 1}
    assert anchors.present(b"::" * 20_000 + b"rare") == {0, 2}, "behind what is too much, in the same block"
    assert anchors.present(b"x" * 100_000 + b"rare") == {2}
    assert anchors.present(b"") == set()
