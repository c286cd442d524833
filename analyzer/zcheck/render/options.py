"""How a report is to look, and what a terminal can show."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from zcheck.model.base import Record
from zcheck.render.redact import RedactionNames

PLAIN_WIDTH = 100
# Characters that the text format uses beside ASCII; a terminal that lacks one of them gets the ASCII form of all.
_NEEDED = "─│├└·…→×"


class RenderOptions(Record, frozen=True):
    """Options of all formats; each format uses those that mean something to it.

    ``width`` in columns; ``redact`` None leaves the choice to the format (on for what is meant to be shared).
    """

    width: int = PLAIN_WIDTH
    color: bool = False
    ascii_only: bool = False
    tree: bool = False
    verbose: bool = False
    redact: bool | None = None
    names: RedactionNames = RedactionNames()


class Stream(Protocol):
    """What is asked of an output stream."""

    def isatty(self) -> bool:
        """Whether it is a terminal."""
        ...


def terminal_options(
    stream: Stream, environ: Mapping[str, str], columns: int | None = None, color: bool | None = None
) -> RenderOptions:
    """Options that suit ``stream``: NO_COLOR, FORCE_COLOR, COLUMNS and the stream's encoding are honoured.

    ``columns``: the terminal's width if known; ``color``: the user's own choice, which wins over all.
    """
    terminal = stream.isatty()
    if color is None:
        color = not environ.get("NO_COLOR") and (
            bool(environ.get("FORCE_COLOR")) or (terminal and environ.get("TERM") != "dumb")
        )
    asked = environ.get("COLUMNS", "")
    if asked.isdigit() and int(asked) > 0:
        columns = int(asked)
    encoding = getattr(stream, "encoding", None) or "ascii"
    try:
        _NEEDED.encode(encoding)
        ascii_only = False
    except (UnicodeEncodeError, LookupError):
        ascii_only = True
    return RenderOptions(
        width=max(40, columns if columns and (terminal or asked) else PLAIN_WIDTH), color=color, ascii_only=ascii_only
    )
