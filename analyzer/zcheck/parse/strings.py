"""Reads a file once for names of CUDA functions and DLLs in ASCII and UTF-16 strings.

How it is fast: one pass finds the few places where a name may begin or end (``cu``, ``nv``, ``.d`` …, each also with
a NUL after each byte for UTF-16), see ``anchors``; only around these is the text looked at in Python. Device code is
not read (``skip``), the rest in pieces, so memory stays small.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from zcheck.model.base import DEFAULT_LIMITS, Limits, Problem
from zcheck.model.facts import PeFacts
from zcheck.model.hidden import HiddenFacts
from zcheck.parse import cuda_loader, delay_hooks, dotnet, names_sort
from zcheck.parse.anchors import DENSE, Anchors
from zcheck.parse.names import NameTables
from zcheck.parse.names_tokens import Token

PIECE = 4 * 1024 * 1024
MARGIN = 1024
"""bytes read before and after a piece, so that a string at its edge is seen whole"""

# A family's words begin alike, and inside of a word that was taken no other one of the family is looked for.
_FAMILIES = (("cu",), ("nv", "npp", "ncc"), ("Nv", "NV"), ("optix",))
_WORD_STARTS = [(family, start) for family, starts in enumerate(_FAMILIES) for start in starts]


def _wide(text: str) -> bytes:
    """The text in UTF-16, without the NUL of its last character."""
    return text.encode("utf-16-le")[:-1]


_STARTS: tuple[tuple[bytes, int], ...] = (
    *((start.encode(), family) for family, start in _WORD_STARTS),
    *((_wide(start), family) for family, start in _WORD_STARTS),
)
_SUFFIXES = tuple(encode for text in (".d", ".D", ".e", ".E") for encode in (text.encode(), _wide(text)))
_FRAGMENTS = (b"64_", _wide("64_"))
_ANCHORS = Anchors((*(start for start, _ in _STARTS), *_SUFFIXES, *_FRAGMENTS))
_FIRST_SUFFIX, _FIRST_FRAGMENT = len(_STARTS), len(_STARTS) + len(_SUFFIXES)
_CU = re.compile(rb"c\x00?u")
_SUFFIX = re.compile(rb"\.\x00?(?:[dD]\x00?[lL]\x00?[lL]|[eE]\x00?[xX]\x00?[eE])")
_WORD = re.compile(rb"[A-Za-z0-9_]+")
_WORD_16 = re.compile(rb"(?:[A-Za-z0-9_]\x00)+")
_FRAGMENT = re.compile(rb"64_(?:\d{1,4}(?:_\d{1,3})?|(?:%\d*[du]_?){1,3}\d?)(?:\.dll)?(?=\x00)")
_FRAGMENT_16 = re.compile(
    rb"6\x004\x00_\x00(?:\d\x00){1,4}(?:_\x00(?:\d\x00){1,3})?(?:\.\x00d\x00l\x00l\x00)?(?=\x00\x00)"
)
_INSIDE = re.compile(rb"cu[A-Z]|cuda[A-Z]|cublas|cudnn|cufft|curand|cusparse|cusolver|nvml[A-Z]|nvrtc[A-Z]")
_LONG_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{120}")
_TEXT = re.compile(rb"[\t\n\r\x20-\x7e]{80}")
_IS_WORD = bytes(chr(i).isascii() and (chr(i).isalnum() or chr(i) == "_") for i in range(256))
_IS_NAME = bytes(bool(_IS_WORD[i]) or i in b".-+%#" for i in range(256))
_IS_TEXT = bytes(0x20 <= i < 0x7F for i in range(256))
_LONGEST = 160
_SEPARATORS = frozenset(b";,|:")
_PROSE = 4
"""so many printable characters before a name make it part of a longer text; fewer are the tail of a number (doubles end
in ``@`` or ``?``)"""


def scan(
    path: Path,
    facts: PeFacts | None,
    names: NameTables,
    skip: Iterable[tuple[int, int]] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> HiddenFacts:
    """The hidden CUDA of one file on disk; see :func:`scan_file`. An unreadable file gives a Problem, no exception."""
    try:
        with open(path, "rb") as file:
            return scan_file(file, path.name, facts, names, skip, limits)
    except OSError as error:
        reason = f"cannot be read: {error.strerror or error}"
        return HiddenFacts(name=path.name, problems=(Problem(path=path.name, reason=reason, partial=True),))


def scan_file(
    file: BinaryIO,
    name: str,
    facts: PeFacts | None,
    names: NameTables,
    skip: Iterable[tuple[int, int]] = (),
    limits: Limits = DEFAULT_LIMITS,
) -> HiddenFacts:
    """The hidden CUDA of an open binary file (seekable; on disk or in memory).

    ``facts`` are its PE facts, None for a file that is no PE; ``skip`` are (start, end) file offsets not to be read for
    strings (device code). Nothing is raised on odd bytes.
    """
    size = file.seek(0, 2)
    managed = dotnet.read(file, facts, limits) if facts is not None and facts.is_dotnet else None
    gaps = list(skip)
    if managed is not None and managed.metadata is not None:
        gaps.append(managed.metadata)  # its strings are read by their tables, not as loose bytes
    ranges = _ranges(size, gaps)
    tokens: list[Token] = []
    problems: list[Problem] = list(managed.problems) if managed is not None else []
    dense: list[int] = []
    for token in _tokens(file, ranges, size, dense):
        if len(tokens) >= limits.strings:
            problems.append(
                Problem(path=name, reason=f"more than {limits.strings} names", offset=token.offset, partial=True)
            )
            break
        tokens.append(token)
    if dense:
        reason = f"{len(dense)} blocks that repeat one text were not read for names"
        problems.append(Problem(path=name, reason=reason, offset=dense[0], partial=True))
    if managed is not None:
        tokens.extend(managed_tokens(managed.user_strings))
    sorter = names_sort.Sorter(name, facts, names)
    if managed is not None:
        sorter.take_p_invokes(managed.p_invokes, managed.loads)
    sorter.take(tokens)
    if facts is not None:
        sorter.hooks = delay_hooks.hooks(file, facts)
    linked = {runtime.kind for runtime in sorter.runtimes}
    if facts is not None and facts.machine == "x64":
        if "cuda.lib" in linked:
            sorter.take_loader(cuda_loader.used(file, facts, sorter.name_offsets(), names, limits))
        if "cudart-hybrid" in linked:
            sorter.take_loader(cuda_loader.used_runtime(file, facts, names, limits))
    scanned = sum(end - start for start, end in ranges)
    return sorter.result(scanned, size - scanned, tuple(problems))


def managed_tokens(strings: Sequence[tuple[int, str]]) -> Iterator[Token]:
    """Tokens of .NET string literals, given as (file offset, text)."""
    for offset, text in strings:
        for part in re.split(r"[;,|\\/]", text):
            kind = "file" if part.lower().endswith((".dll", ".exe")) else "word"
            if part and part.isascii() and len(part) <= _LONGEST:
                yield Token(kind, part, offset, True, " " not in part, listed=part != text)


def _ranges(size: int, skip: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """What remains of the file without ``skip``, as (start, end)."""
    left, at = [], 0
    for start, end in sorted(skip):
        start, end = max(start, at), min(end, size)
        if end <= start:
            continue
        if start > at:
            left.append((at, start))
        at = end
    if at < size:
        left.append((at, size))
    return left


def _tokens(file: BinaryIO, ranges: list[tuple[int, int]], size: int, dense: list[int]) -> Iterator[Token]:
    for start, end in ranges:
        for at in range(start, end, PIECE):
            stop = min(at + PIECE, end)
            low = max(0, at - MARGIN)
            file.seek(low)
            data = file.read(min(stop + MARGIN, size) - low)
            if len(data) <= at - low:
                return
            yield from piece_tokens(data, at - low, min(stop - low, len(data)), low, dense)


def piece_tokens(data: bytes, start: int, stop: int, base: int, dense: list[int] | None = None) -> Iterator[Token]:
    """Tokens whose anchor lies in ``data[start:stop]``; ``base`` is the file offset of ``data[0]``. ``dense`` gets the
    offsets of blocks that are left out because they repeat an anchor."""
    done = [-1] * len(_FAMILIES)
    for block in _ANCHORS.blocks(data, start, stop, DENSE):
        if len(block) > DENSE:
            if dense is not None:
                dense.append(base + block[0][1])
            continue
        for number, at in block:
            if number < _FIRST_SUFFIX:
                yield from _words(data, at, number, stop, done, base)
            elif token := _other(data, at, number, base):
                yield token


def _words(data: bytes, at: int, number: int, stop: int, done: list[int], base: int) -> Iterator[Token]:
    text, family = _STARTS[number]
    token = _named(data, at, at + len(text), family, done, base)
    if token is not None:
        yield token
    # ``nccu…``: the anchor of the first three letters hides the one that begins with the third.
    last = at + len(text) - 1
    if last < stop and (hidden := _CU.match(data, last)):
        token = _named(data, last, hidden.end(), 0, done, base)
        if token is not None:
            yield token


def _other(data: bytes, at: int, number: int, base: int) -> Token | None:
    """The file name or fragment of one at an anchor."""
    if number < _FIRST_FRAGMENT:
        match = _SUFFIX.match(data, at)
        return _file(data, at, match.end(), base) if match else None
    if data[at + 1]:
        whole = _FRAGMENT.match(data, at)
        if whole and not _text_before(data, at):
            return Token("fragment", whole.group().decode(), base + at, False, True)
    elif (whole := _FRAGMENT_16.match(data, at)) and not _text_before16(data, at):
        return Token("fragment", whole.group()[::2].decode(), base + at, True, True)
    return None


def _named(data: bytes, at: int, end: int, family: int, done: list[int], base: int) -> Token | None:
    """The identifier around an anchor at ``data[at:end]`` of a family, unless one that was taken reaches over it."""
    if at < done[family]:
        return None
    wide = data[at + 1] == 0
    after = data[end : end + 2] if not wide else data[end + 1 : end + 2]
    if not after or not _IS_WORD[after[0]]:
        return None
    token, done[family] = _word16(data, at, base) if wide else _word(data, at, base)
    return token


def _text_before(data: bytes, at: int) -> bool:
    """True when the name is the end of a longer text."""
    first = at - 1
    while first >= 0 and at - first <= _PROSE and _IS_TEXT[data[first]]:
        first -= 1
    return at - 1 - first >= _PROSE or (at - 1 - first > 0 and bool(_IS_WORD[data[at - 1]]))


def _text_before16(data: bytes, at: int) -> bool:
    return at >= 2 and data[at - 1] == 0 and bool(_IS_TEXT[data[at - 2]])


def _word(data: bytes, at: int, base: int) -> tuple[Token | None, int]:
    """The ASCII identifier around an anchor, and where to go on."""
    match = _WORD.match(data, at)
    if match is None:
        return None, at + 1
    end, start = match.end(), at
    while start and data[start - 1] == 0x5F:
        start -= 1
    inside = start > 0 and bool(_IS_WORD[data[start - 1]])
    if end - start < 5:
        return None, end
    if inside or end - start > _LONGEST:
        # no name begins here, unless strings run into each other
        if _INSIDE.match(data, at) and _long_text(data, start, end):
            return Token(
                "word", data[start : min(end, start + 4096)].decode("ascii"), base + start, False, False, True
            ), end
        return None, end if end - start > _LONGEST else at + 2
    text = data[start:end].decode("ascii")
    whole = end < len(data) and data[end] == 0 and not _text_before(data, start)
    joined = not whole and _long_text(data, start, end)
    return Token("word", text, base + start, False, whole, joined), end


def _word16(data: bytes, at: int, base: int) -> tuple[Token | None, int]:
    match = _WORD_16.match(data, at)
    if match is None:
        return None, at + 1
    end, start = match.end(), at
    while start >= 2 and data[start - 1] == 0 and _IS_WORD[data[start - 2]] and at - start < 2 * _LONGEST:
        start -= 2
    if not 10 <= end - start <= 2 * _LONGEST:
        return None, end
    whole = data[end : end + 2] == b"\0\0" and not _text_before16(data, start)
    return Token("word", data[start:end:2].decode("ascii"), base + start, True, whole), end


def _file(data: bytes, dot: int, end: int, base: int) -> Token | None:
    """The file name that ends at ``end``, from its ``.dll`` or ``.exe``."""
    wide = data[dot + 1] == 0
    step = 2 if wide else 1
    end = dot + 4 * step
    if wide and data[dot + 1 : end : 2] != b"\0\0\0\0":
        return None
    start = dot
    floor = max(0, dot - _LONGEST * step)
    while start - step >= floor and _IS_NAME[data[start - step]] and (not wide or data[start - 1] == 0):
        start -= step
    if start == dot:
        return None
    text = data[start:end:step].decode("ascii")
    after = data[end] if end < len(data) else 0
    follows_nul = (after == 0 and data[end + 1 : end + 2] in (b"\0", b"")) if wide else after == 0
    before = data[start - step] if start >= step and (not wide or data[start - 1] == 0) else 0
    listed = _in_list(data, start, end, step)
    in_path = before in b"\\/"
    prose = not (listed or in_path) and (_text_before16(data, start) if wide else _text_before(data, start))
    whole = (follows_nul or listed) and not prose
    joined = not whole and not wide and _long_text(data, start, end)
    if not whole and not joined and after and _IS_WORD[after]:
        return None
    return Token("file", text, base + start, wide, whole, joined, listed)


def _in_list(data: bytes, start: int, end: int, step: int) -> bool:
    """True when a separator parts the name from another one, and no space from prose."""
    after = data[end : end + 2 * step : step]
    before = data[max(0, start - 2 * step) : start : step]
    if not (
        (len(after) == 2 and after[0] in _SEPARATORS and _IS_NAME[after[1]])
        or (len(before) == 2 and before[1] in _SEPARATORS and _IS_NAME[before[0]])
    ):
        return False
    floor = max(0, start - 256 * step)
    while start - step >= floor and (_IS_NAME[data[start - step]] or data[start - step] in _SEPARATORS):
        start -= step
    return data[start - step] != 0x20 if start >= step else True


def _long_text(data: bytes, start: int, end: int) -> bool:
    """True when 200 printable characters without a terminator surround it: text stored end to end (Go, Rust)."""
    return _LONG_TEXT.match(data, max(0, start - 120)) is not None and _TEXT.match(data, end, end + 80) is not None
