"""``zcheck diff A B``: what got better or worse between two JSON reports."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path
from typing import Annotated, Optional

import msgspec
import typer

from zcheck.cli.files import read_file
from zcheck.errors import EXIT_FINDINGS, UsageError
from zcheck.model.diff import compare
from zcheck.model.report import Applications, Report


def diff(
    first: Annotated[Path, typer.Argument(metavar="A", help="The JSON report from before.")],
    second: Annotated[
        Optional[Path],  # noqa: UP045 (typer resolves annotations at run time)
        typer.Argument(metavar="B", help="The JSON report from after; without it, two stacks of A are compared."),
    ] = None,
    stacks: Annotated[
        Optional[tuple[str, str]],  # noqa: UP045
        typer.Option("--stacks", metavar="ID ID", help="Compare this stack of A with that stack of B (or of A)."),
    ] = None,
    fmt: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")] = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List what stayed the same, too.")] = False,
    redact: Annotated[bool, typer.Option("--redact/--no-redact", help="Take out user and machine names.")] = False,
) -> None:
    """Compare two JSON reports: two versions of a program, or one program on two stacks.

    Exits with 1 only when a verdict, a finding or a function got worse.
    """
    from zcheck.cli.names import local_names
    from zcheck.render import DIFF_FORMATS, render_diff, terminal_options

    if fmt not in DIFF_FORMATS:
        raise UsageError(f"format {fmt!r} does not exist for a difference; choose one of {', '.join(DIFF_FORMATS)}")
    before = _read(first)
    after = before if second is None else _read(second)
    if second is None and stacks is None:
        stacks = _two_stacks(first, before)
    result = compare(before, after, stacks)
    options = terminal_options(sys.stdout, os.environ, shutil.get_terminal_size((100, 24)).columns)
    options = msgspec.structs.replace(options, verbose=verbose, redact=redact, names=local_names())
    typer.echo(render_diff(result, fmt, options), nl=False)
    if result.worse:
        raise typer.Exit(EXIT_FINDINGS)


def _read(path: Path) -> Report | Applications:
    from zcheck.render import from_json

    return from_json(read_file(path), str(path))


def _two_stacks(path: Path, report: Report | Applications) -> tuple[str, str]:
    reports = report.applications if isinstance(report, Applications) else (report,)
    ids = list(dict.fromkeys(stack.id for one in reports for stack in one.stacks))
    if len(ids) != 2:
        raise UsageError(
            f"{path}: name two of its stacks with --stacks, or a second report; it has {', '.join(ids) or 'none'}"
        )
    return ids[0], ids[1]
