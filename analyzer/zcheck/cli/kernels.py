"""``zcheck kernels FILE``: containers, entries and kernels of one file, and what ZLUDA releases do with them."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zcheck.errors import InputError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from zcheck.model.device_code import DeviceCodeFacts, DeviceEntry, ReleasePtx, Replay

DEFAULT_RELEASE = "v6"
MAX_ROWS = 40
"""entries and kernels that the text names; JSON has all"""
EXTENSIONS = {"ptx": "ptx", "sass": "cubin"}


class Format(str, Enum):
    """Output formats of this verb."""

    text = "text"
    json = "json"


def kernels(
    file: Annotated[Path, typer.Argument(help="Program, DLL, .fatbin, .cubin or .ptx, or one of them packed as .zst.")],
    zluda: Annotated[
        list[str] | None, typer.Option("--zluda", metavar="RELEASE", help="ZLUDA release to replay; may be repeated.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="GFX", help="Add what is known of this GPU, e.g. gfx1100.")
    ] = None,
    output_format: Annotated[Format, typer.Option("--format", help="Output format.")] = Format.text,
    extract: Annotated[
        Path | None,
        typer.Option("--extract", metavar="DIR", help="Write all PTX and cubins into DIR; nothing is overwritten."),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep facts of PTX and cubins for later runs.")] = True,
) -> None:
    """Show the device code of FILE, kernel by kernel, and which kernels a ZLUDA release would load."""
    from zcheck.cli.kernels_cache import FileCache, default_path
    from zcheck.coverage.locate import open_database
    from zcheck.coverage.replay import replay
    from zcheck.coverage.replay_facts import release_ptx, tables_from
    from zcheck.coverage.replay_report import compile_estimate, hardware_notes
    from zcheck.parse.fatbin import read_device_code

    if not file.is_file():
        raise InputError(f"{file}: is no file")
    tables = tables_from(open_database())
    if gpu is not None and gpu not in {row["gfx"] for row in tables.gfx}:
        raise UsageError(f"{gpu!r} is no GPU that is known; known are {', '.join(row['gfx'] for row in tables.gfx)}")
    releases = [release_ptx(tables, tag) for tag in dict.fromkeys(zluda or [DEFAULT_RELEASE])]
    if cache:
        with FileCache(default_path()) as kept:
            code = read_device_code(file, cache=kept)
    else:
        code = read_device_code(file)
    replays = [replay(code, release) for release in releases]
    notes: dict[str, list[str]] = {}
    for release, one in zip(releases, replays, strict=True):
        lines = list(hardware_notes(code, release, gpu, tables.gfx)) if gpu else []
        estimate = compile_estimate(one, release)
        notes[release.release] = lines + ([estimate] if estimate else [])
    written = _extract(file, code, extract) if extract is not None else 0
    if output_format is Format.json:
        typer.echo(_json(code, replays, notes))
        return
    _text(code, releases, replays, notes)
    if extract is not None:
        typer.echo(f"{written} files written to {extract}")


# --- extract -------------------------------------------------------------------------------------------------------


def _extract(file: Path, code: DeviceCodeFacts, folder: Path) -> int:
    """Write PTX and cubins; names are made of numbers and architectures only, so they stay inside ``folder``."""
    from zcheck.parse.fatbin import read_payload

    entries: list[tuple[str, DeviceEntry]] = []
    for number, image in enumerate([*(c.entries for c in code.containers), *((e,) for e in code.loose)]):
        for index, entry in enumerate(image):
            if entry.kind in EXTENSIONS and entry.problem is None:
                arch = re.sub(r"[^A-Za-z0-9_]", "", entry.arch)[:16] or "any"
                entries.append((f"{number:05d}-{index:03d}-{arch}.{EXTENSIONS[entry.kind]}", entry))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, _ in entries:
            if (folder / name).exists() or (folder / name).is_symlink():
                raise UsageError(f"{folder / name} is there already; nothing was written")
        for name, entry in entries:
            # "x" again: nothing is overwritten that came up in between.
            with (folder / name).open("xb") as out:
                out.write(read_payload(file, entry))
    except FileExistsError as error:
        raise UsageError(f"{error.filename or folder} is there already and is not overwritten") from None
    except OSError as error:
        raise InputError(f"{folder}: cannot be written to: {error.strerror or error}") from None
    return len(entries)


# --- output --------------------------------------------------------------------------------------------------------


def _json(code: DeviceCodeFacts, replays: list[Replay], notes: dict[str, list[str]]) -> str:
    import json

    import msgspec

    from zcheck import __version__
    from zcheck.coverage.replay_report import device_code_reports

    def entry(one: DeviceEntry) -> dict[str, Any]:
        return {
            "kind": one.kind,
            "number": one.number,
            "arch": one.arch,
            "version": one.version,
            "compression": one.compression,
            "flags": one.flags,
            "identifier": one.identifier,
            "offset": one.offset,
            "stored": one.stored,
            "size": one.size,
            "sha256": one.sha256,
            "kernels": list(one.kernels),
            "problem": one.problem,
        }

    document = {
        "schema": 1,
        "zcheck": __version__,
        "target": code.path,
        "form": code.form,
        "size": code.size,
        "containers": [
            {"offset": c.offset, "size": c.size, "section": c.section, "entries": [entry(e) for e in c.entries]}
            for c in code.containers
        ],
        "loose": [entry(one) for one in code.loose],
        "wrappers": [msgspec.to_builtins(wrapper) for wrapper in code.wrappers],
        "opaque": list(code.opaque),
        "device_code": [msgspec.to_builtins(r) for r in device_code_reports(code.path, code, replays)],
        "replay": {one.release: msgspec.to_builtins(one) for one in replays},
        "notes": notes,
        "problems": [msgspec.to_builtins(problem) for problem in code.problems],
    }
    return json.dumps(document, indent=2, ensure_ascii=False)


def _clean(text: str) -> str:
    """Text out of a file, safe for a terminal: no control characters, no markup."""
    from rich.markup import escape

    return escape("".join(char if char.isprintable() else "?" for char in text))


def headline(code: DeviceCodeFacts, replays: list[Replay]) -> str:
    """The first line: what is there, and for each release how many kernels would load."""
    if not code.containers and not code.loose:
        if code.opaque:
            return f"{code.path}: device code that cannot be read ({', '.join(code.opaque)} compressed as a whole)"
        return f"{code.path}: no device code"
    parts = []
    for one in replays:
        said = [f"{one.loadable} of {one.kernels} kernels predicted loadable"]
        said += [
            f"{count} {word}"
            for count, word in (
                (one.dropped, "dropped"), (one.stub, "stub"), (one.empty, "not to be found"),
                (one.lost, "lost with their module"),
            )
            if count
        ]  # fmt: skip
        parts.append(f"ZLUDA {one.release}: " + ", ".join(said))
    return f"{code.path}: " + "; ".join(parts)


def _text(
    code: DeviceCodeFacts, releases: list[ReleasePtx], replays: list[Replay], notes: dict[str, list[str]]
) -> None:
    from rich.console import Console

    from zcheck.coverage.replay_report import reasons

    console = Console(highlight=False)
    console.print("[bold]" + _clean(headline(code, replays)) + "[/bold]", soft_wrap=True)
    for problem in code.problems:
        where = f" at {problem.offset:#x}" if problem.offset is not None else ""
        console.print(f"[yellow]note:[/yellow] {_clean(problem.reason)}{where}", soft_wrap=True)
    if not code.containers and not code.loose:
        return
    for release, one in zip(releases, replays, strict=True):
        inherited = f" (read from its tag; limits inherited from {release.inherits})" if release.inherits else ""
        console.print(f"\n[bold]ZLUDA {_clean(one.release)}[/bold]{inherited}", soft_wrap=True)
        if one.load_fails:
            console.print(f"  the load fails: {_clean(one.load_fails)}", soft_wrap=True)
        lines = reasons(one.containers, 4)
        for line in lines[:MAX_ROWS]:
            console.print(f"  {_clean(line)}", soft_wrap=True)
        for note in dict.fromkeys(note for part in one.containers for note in part.notes):
            console.print(f"  note: {_clean(note)}", soft_wrap=True)
        for note in notes[one.release]:
            console.print(f"  note: {_clean(note)}", soft_wrap=True)
        if not lines and one.kernels:
            console.print("  nothing known stops a kernel; whether they compute right only a run shows", soft_wrap=True)
    console.print()
    _entries(console, code, replays)


def _entries(console: Console, code: DeviceCodeFacts, replays: list[Replay]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("entry", "kind", "arch", "ISA", "packed", "size", "kernels", "taken by"):
        right = name in ("size", "kernels")
        table.add_column(name, justify="right" if right else "left", no_wrap=name != "taken by", overflow="fold")
    rows = 0
    groups = [(c.section, c.entries) for c in code.containers] + [("", (entry,)) for entry in code.loose]
    before = ""
    for number, (section, entries) in enumerate(groups):
        for index, entry in enumerate(entries):
            rows += 1
            if rows > MAX_ROWS:
                continue
            if section and section != before:
                table.add_row(f"[dim]{_clean(section)}[/dim]")
            before = section
            taken = [
                one.release
                for one in replays
                for part in one.containers
                if (part.chosen_container, part.chosen) == (number, index)
            ]
            table.add_row(
                f"{number}.{index}",
                entry.kind if entry.kind != "other" else f"other ({entry.number})",
                _clean(entry.arch),
                entry.version,
                "" if entry.compression == "none" else entry.compression,
                _size(entry.size),
                str(len(entry.kernels)),
                _clean(entry.problem or ", ".join(taken)),
            )
    console.print(table)
    if rows > MAX_ROWS:
        console.print(f"… and {rows - MAX_ROWS} entries more (--format json lists all)")


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count / 1e3:.1f} kB" if count >= 1000 else f"{count} B"
