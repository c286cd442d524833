"""Building blocks of the text format: safe styled text, hanging indents, tables."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

from zcheck.render.options import RenderOptions
from zcheck.render.safe import ascii_text, visible

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table
    from rich.text import Text


VERDICT_STYLES = {
    "blocked": "bold red",
    "unknown": "bold magenta",
    "at-risk": "bold yellow",
    "needs-setup": "bold cyan",
    "likely": "bold green",
    "verified": "bold green",
    "no-cuda": "bold blue",
}


class Writer:
    """Prints parts one after the other into one text; every string passes ``clean`` first."""

    def __init__(self, options: RenderOptions) -> None:
        from rich.console import Console

        self.options = options
        self.clean = ascii_text if options.ascii_only else visible
        self._file = io.StringIO()
        self.console: Console = Console(
            file=self._file,
            width=options.width,
            force_terminal=options.color,
            no_color=not options.color,
            color_system="standard" if options.color else None,
            highlight=False,
            emoji=False,
            markup=False,
            legacy_windows=False,
            _environ={},
        )

    def text(self) -> str:
        """What was written, without blanks at line ends."""
        lines = self._file.getvalue().splitlines()
        return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"

    def styled(self, *parts: tuple[str, str] | str) -> Text:
        """One text of (string, style) parts, made safe."""
        from rich.text import Text

        text = Text(overflow="fold")
        for part in parts:
            string, style = part if isinstance(part, tuple) else (part, "")
            text.append(self.clean(string), style=style)
        return text

    def hang(self, lead: Text, body: RenderableType, indent: int = 0) -> None:
        """``lead`` in a column of its own width, ``body`` wrapped beside it."""
        from rich.padding import Padding
        from rich.table import Table
        from rich.text import Text

        if isinstance(body, Text) and indent + lead.cell_len + body.cell_len <= self.options.width:
            self.console.print(Text(" " * indent) + lead + body)  # one line: no need for a table
            return
        grid = Table.grid(padding=(0, 0))
        grid.add_column(width=lead.cell_len, no_wrap=True)
        grid.add_column(overflow="fold")
        grid.add_row(lead, body)
        self.console.print(Padding(grid, (0, 0, 0, indent)))

    def table(self) -> Table:
        """An empty table with a line under its head."""
        from rich import box
        from rich.table import Table

        return Table(box=box.ASCII if self.options.ascii_only else box.SIMPLE, pad_edge=False, show_edge=False)

    def heading(self, title: str) -> None:
        """A blank line and a heading."""
        self.console.print()
        self.console.print(self.styled((title, "bold")))

    def names(self, names: list[str] | tuple[str, ...], limit: int) -> str:
        """Names joined by commas, the rest as a count unless ``verbose``."""
        if self.options.verbose or len(names) <= limit:
            return ", ".join(names)
        return ", ".join(names[:limit]) + f" and {len(names) - limit} more"
