"""``zcheck cache``: what is kept between runs, and getting rid of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

from zcheck.errors import InputError, UsageError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Facts of files kept between runs (ZCHECK_CACHE names another folder, or off).",
)
_WORDS = {
    "pe": "PE headers, imports, exports",
    "device": "device code of files",
    "replay": "replays of device code",
    "hidden": "names in strings",
    "rows": "audited applications",
    "files": "known files",
}


@app.command()
def info(
    fmt: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")] = "text",
) -> None:
    """Say where the cache is and what it holds."""
    from zcheck.cli.cache_store import FactCache, default_path

    if fmt not in ("text", "json"):
        raise UsageError(f"format {fmt!r} does not exist; choose text or json")
    path = default_path()
    with FactCache(path if path is not None and path.exists() else None) as cache:
        kinds = cache.summary()
        limit = cache.limit
    size = sum(part.stat().st_size for part in _parts()) if path is not None else 0
    if fmt == "json":
        counted = {kind: {"count": count, "bytes": held} for kind, (count, held) in kinds.items()}
        typer.echo(json.dumps({"path": str(path) if path else None, "bytes": size, "limit": limit, "kinds": counted}))
        return
    if path is None:
        typer.echo("The cache is off (ZCHECK_CACHE).")
        return
    typer.echo(f"{path}: {size / 1e6:.1f} MB, values up to {limit / 1e6:,.0f} MB are kept")
    for kind, (count, held) in kinds.items():
        held_text = f", {held / 1e6:.1f} MB" if held else ""
        typer.echo(f"  {count:>8,} {_WORDS.get(kind, 'PTX and cubin contents')}{held_text}")


@app.command()
def clear() -> None:
    """Forget all kept facts; safe while other checks run."""
    from zcheck.cli.cache_store import FactCache, default_path

    path = default_path()
    if path is None or not path.exists():
        typer.echo("There is no cache to clear.")
        return
    with FactCache(path) as cache:
        if not cache.usable:
            raise InputError(f"{path} cannot be cleared: it cannot be opened")
        cache.clear()
    typer.echo(f"{path} is empty now.")


def _parts() -> list[Path]:
    from zcheck.cli.cache_store import default_path

    path = default_path()
    assert path is not None
    names = (path, path.with_name(path.name + "-wal"), path.with_name(path.name + "-shm"))
    return [name for name in names if name.is_file()]
