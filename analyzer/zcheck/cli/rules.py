"""``zcheck rules``: list the rules, and run their examples."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zcheck.errors import EXIT_FINDINGS

app = typer.Typer(
    help="List the rules, and run the examples that come with them.", no_args_is_help=True, rich_markup_mode=None
)

_Folder = Annotated[
    Path | None, typer.Option("--rules", metavar="DIR", help="A folder of rule files instead of zcheck's own.")
]


@app.command("list")
def list_rules(rules: _Folder = None) -> None:
    """Print id, severity and title of every rule."""
    from zcheck.cli.data import rule_set

    for rule in rule_set(rules):
        typer.echo(f"{rule.id:<32} {rule.severity:<8} {rule.title}")


@app.command("test")
def test(rules: _Folder = None) -> None:
    """Run every example of every rule; ends with 1 when one does not come out as it says."""
    from zcheck.cli.data import coverage, rule_set
    from zcheck.cli.examples import failures

    loaded = rule_set(rules)
    wrong = failures(loaded, coverage())
    for text in wrong:
        typer.echo(text, err=True)
    count = sum(len(rule.examples) for rule in loaded)
    typer.echo(f"{count - len(wrong)} of {count} examples of {len(loaded)} rules come out as they say")
    if wrong:
        raise typer.Exit(EXIT_FINDINGS)
