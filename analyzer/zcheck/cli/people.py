"""Text for people by the verbs that print no report: as wide as the report is, wrapped, and safe for the terminal."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from zcheck.render.textwriter import Writer


def at_terminal() -> bool:
    """True where a person reads along; in a pipe ``zcheck db`` prints a record a line, for other programs.

    COLUMNS is no sign of a person: readline exports it to every child process.
    """
    return sys.stdout.isatty() or bool(os.environ.get("FORCE_COLOR"))


def writer(verbose: bool = False) -> Writer:
    """A writer that suits stdout as the report's does."""
    from zcheck.cli import output

    return Writer(output.options(None, verbose=verbose))


def width() -> int | None:
    """The width that lines are folded at; None in a pipe to which nobody gave one."""
    from zcheck.cli import output

    return output.options(None).width if at_terminal() or os.environ.get("COLUMNS") else None


def show(out: Writer) -> None:
    """What ``out`` holds, to stdout."""
    from zcheck.cli import output

    output.write(out.text())


def table(out: Writer, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """A table where no word of it has to be broken; else a row is its first cell with the others behind."""
    from rich.table import Table

    if title:
        out.console.print(out.styled((title, "bold")))
    cells = zip(columns, *rows, strict=True)
    longest = [max(len(word) for cell in column for word in (cell.split() or ("",))) for column in cells]
    if sum(longest) + len(columns) - 1 <= out.options.width:
        grid = Table(box=None, pad_edge=False, header_style="bold")
        for column in columns:
            grid.add_column(out.styled(column), overflow="fold")
        for row in rows:
            grid.add_row(*(out.styled(cell) for cell in row))
        out.console.print(grid)
        return
    lead = max((len(row[0]) for row in rows), default=0) + 2
    for row in rows:
        told = [f"{column} {cell}" for column, cell in zip(columns[1:], row[1:], strict=True) if cell]
        out.hang(out.styled((row[0].ljust(lead), "bold")), out.styled("; ".join(told)))
