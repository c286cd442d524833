"""``zcheck kernels FILE``: containers, entries and kernels of one file, and what ZLUDA releases do with them."""

from __future__ import annotations

import re
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from zcheck.errors import InputError, UsageError
from zcheck.render import view

if TYPE_CHECKING:
    from zcheck.model.device_code import DeviceCodeFacts, DeviceEntry, ReleasePtx, Replay
    from zcheck.render.textwriter import Writer

DEFAULT_RELEASE = "v6"
MAX_ROWS = 40
"""entries and causes that the text names without --verbose"""
MAX_NAMES = 4
"""kernels that it names for a cause"""
MAX_NAME = 96
"""characters of a kernel's mangled name"""
EXTENSIONS = {"ptx": "ptx", "sass": "cubin"}


class Format(str, Enum):
    """Output formats of this verb."""

    text = "text"
    json = "json"


def kernels(
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="Program, DLL, .fatbin, .cubin or .ptx, or one of them packed as .zst."),
    ],
    zluda: Annotated[
        list[str] | None, typer.Option("--zluda", metavar="RELEASE", help="A ZLUDA release to replay; repeatable.")
    ] = None,
    gpu: Annotated[
        str | None, typer.Option("--gpu", metavar="GFX", help="Add what is known of this GPU, such as gfx1100.")
    ] = None,
    output_format: Annotated[
        Format, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")
    ] = Format.text,
    extract: Annotated[
        Path | None,
        typer.Option("--extract", metavar="DIR", help="Write all PTX and cubins into DIR; nothing is overwritten."),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every kernel and entry.")] = False,
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
    _text(code, releases, replays, notes, verbose)
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
    code: DeviceCodeFacts,
    releases: list[ReleasePtx],
    replays: list[Replay],
    notes: dict[str, list[str]],
    verbose: bool,
) -> None:
    from zcheck.cli import people

    out = people.writer(verbose)
    out.console.print(out.styled((headline(code, replays), "bold")))
    for problem in code.problems:
        where = f" at {problem.offset:#x}" if problem.offset is not None else ""
        out.hang(out.styled(("note: ", "yellow")), out.styled(f"{problem.reason}{where}"))
    if code.containers or code.loose:
        for release, one in zip(releases, replays, strict=True):
            _release(out, release, one, notes[one.release])
        out.console.print()
        _entries(out, code, replays)
    people.show(out)


def _release(out: Writer, release: ReleasePtx, one: Replay, notes: list[str]) -> None:
    """What one release does with the kernels: causes with the kernels they concern, then notes."""
    inherited = f" (read from its tag; limits inherited from {release.inherits})" if release.inherits else ""
    out.console.print()
    out.console.print(out.styled((f"ZLUDA {one.release}", "bold"), inherited))
    if one.load_fails:
        out.hang(out.styled(""), out.styled(f"the load fails: {one.load_fails}"), 2)
    lost: dict[tuple[str, str], list[str]] = {}
    for part in one.containers:
        for fate in part.fates:
            lost.setdefault((fate.fate, fate.reason), []).append(fate.name)
    causes = sorted(lost.items(), key=lambda item: -len(item[1]))
    _causes(out, causes)
    for note in dict.fromkeys((*(note for part in one.containers for note in part.notes), *notes)):
        out.hang(out.styled("note: "), out.styled(note), 2)
    if not causes and one.kernels:
        said = "nothing known stops a kernel; whether they compute right only a run shows"
        out.hang(out.styled(""), out.styled(said), 2)


def _causes(out: Writer, causes: list[tuple[tuple[str, str], list[str]]]) -> None:
    """Why kernels are lost, the most frequent cause first; the kernels a line each with ``verbose``."""
    if out.options.verbose:
        for (kind, reason), names in causes:
            out.hang(out.styled(""), out.styled(f"{kind}: {reason} ({view.plural(len(names), 'kernel')})"), 2)
            for name in names:
                out.hang(out.styled(""), out.styled((name, "dim")), 6)
        return
    for (kind, reason), names in causes[:MAX_ROWS]:
        told = ", ".join(_short(name) for name in names[:MAX_NAMES])
        more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
        out.hang(out.styled(""), out.styled(f"{kind}: {reason} ({len(names)}: {told}{more})"), 2)
    if len(causes) > MAX_ROWS or any(len(names) > MAX_NAMES for _, names in causes):
        out.console.print(out.styled(("  all of them by name with --verbose", "dim")))


def _short(name: str) -> str:
    """A mangled name as far as a line can hold it."""
    return name if len(name) <= MAX_NAME else f"{name[: MAX_NAME - 1]}…"


def _entries(out: Writer, code: DeviceCodeFacts, replays: list[Replay]) -> None:
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
            if rows > MAX_ROWS and not out.options.verbose:
                continue
            if section and section != before:
                table.add_row(out.styled((section, "dim")))
            before = section
            taken = [
                one.release
                for one in replays
                for part in one.containers
                if (part.chosen_container, part.chosen) == (number, index)
            ]
            cells = (
                f"{number}.{index}",
                entry.kind if entry.kind != "other" else f"other ({entry.number})",
                entry.arch,
                entry.version,
                "" if entry.compression == "none" else entry.compression,
                _size(entry.size),
                str(len(entry.kernels)),
                entry.problem or ", ".join(taken),
            )
            table.add_row(*(out.styled(cell) for cell in cells))
    out.console.print(table)
    if rows > MAX_ROWS and not out.options.verbose:
        out.console.print(out.styled(f"… and {rows - MAX_ROWS} entries more with --verbose"))


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB" if count >= 1_000_000 else f"{count / 1e3:.1f} kB" if count >= 1000 else f"{count} B"
