"""A string met in a file, as the scanner hands it on."""

from __future__ import annotations

from typing import NamedTuple


class Token(NamedTuple):
    """A string met: ``kind`` word, file or fragment; ``offset`` in the file; ``whole`` when nothing else belongs to the
    string, ``joined`` when it sits in text without terminators, ``listed`` when separators part it from others."""

    kind: str
    text: str
    offset: int
    utf16: bool
    whole: bool
    joined: bool = False
    listed: bool = False
