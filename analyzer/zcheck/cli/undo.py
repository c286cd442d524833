"""``zcheck undo``: take back what a run left behind when it was killed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from zcheck.errors import UsageError


def undo(
    place: Annotated[
        Path | None, typer.Argument(metavar="[APP]", help="A program or folder; everything that is left, if left out.")
    ] = None,
    fmt: Annotated[str, typer.Option("--format", "-f", help="text or json.")] = "text",
    data_dir: Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="Where journals are kept.")] = None,
) -> None:
    """Put back the files of programs whose run was cut short.

    Exits 1 when something is still in use; run it again once the program has ended.
    """
    import msgspec

    from zcheck.launch import default_data_dir
    from zcheck.launch import undo as take_back
    from zcheck.launch.journal import backups_without_journal
    from zcheck.launch.undo import unreadable

    if fmt not in ("text", "json"):
        raise UsageError(f"undo has the formats text and json, not {fmt!r}")
    data = data_dir or default_data_dir()
    found = list(take_back(data, place))
    bad = unreadable(data)
    folder = (place if place.is_dir() else place.parent) if place else None
    orphans = backups_without_journal(folder, data) if folder else ()
    if fmt == "json":
        product = {
            "recovered": msgspec.to_builtins(found),
            "unreadable": [{"path": str(path), "reason": reason} for path, reason in bad],
            "backups_without_journal": [str(path) for path in orphans],
        }
        typer.echo(json.dumps(product, indent=2, ensure_ascii=False))
    else:
        for recovery in found:
            typer.echo(f"{recovery.program}: {'done' if recovery.done else 'not done'}{_because(recovery.note)}")
            for file in recovery.files:
                typer.echo(f"  {file.state:9} {file.target}{_because(file.note)}")
        for path, reason in bad:
            typer.echo(f"{path}: unreadable journal, nothing was done for it ({reason})")
        for path in orphans:
            typer.echo(f"{path}: a backup that no journal knows; rename it back by hand if it is the program's own")
        if not (found or bad or orphans):
            typer.echo("Nothing was left behind.")
    if bad or not all(recovery.done for recovery in found):
        raise typer.Exit(1)


def _because(note: str) -> str:
    return f" ({note})" if note else ""
