"""``zcheck db``: build, look into and compare the coverage database."""

from __future__ import annotations

import json
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

if TYPE_CHECKING:
    from zcheck.coverage.database import Database

app = typer.Typer(no_args_is_help=True, help="The coverage database: what is known of each release, from which source.")


class Format(str, Enum):
    """How an answer is written."""

    text = "text"
    json = "json"


_Format = Annotated[Format, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")]
_Release = Annotated[
    Optional[list[str]],  # noqa: UP045 (typer reads this at run time, on Python 3.10 too)
    typer.Option("--zluda", metavar="RELEASE", help="A ZLUDA release or alias; repeatable."),
]


def _open() -> Database:
    from zcheck.coverage.database import Database

    return Database.open()


def _print_json(value: object) -> None:
    typer.echo(json.dumps(value, indent=2, ensure_ascii=False))


def _show(title: str, columns: list[str], rows: list[list[str]]) -> None:
    """A table for people; tab-separated lines for other programs, so that nothing is cut or wrapped."""
    from zcheck.cli import people

    if people.at_terminal():
        out = people.writer()
        people.table(out, title, columns, rows)
        people.show(out)
        return
    if title:
        typer.echo(title)
    for row in [columns, *rows]:
        typer.echo("\t".join(row))


@app.command()
def build(
    output: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="FILE", help="File to write; without it the user's cache is filled."),
    ] = None,
    tables: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DIR", help="Folder of text tables instead of this installation's."),
    ] = None,
) -> None:
    """Compile the text tables into one SQLite file and say where it is."""
    from zcheck.coverage.compile import compile_file
    from zcheck.coverage.locate import compiled_file, locate
    from zcheck.errors import UsageError

    folder = tables
    if folder is None:
        location = locate("coverage")
        if location.packaged:
            raise UsageError(
                f"this installation carries the compiled database {location.path}; name --tables to build one"
            )
        folder = location.path
    if not folder.is_dir():
        raise UsageError(f"{folder} is no folder of tables")
    if output is None:
        made = compiled_file(folder)
    else:
        if output.exists():
            raise UsageError(f"{output} exists already")
        try:
            compile_file(folder, output)
        except BaseException:
            output.unlink(missing_ok=True)
            raise
        made = output
    typer.echo(f"{made} ({made.stat().st_size:,} bytes)")


@app.command()
def releases(format: _Format = Format.text) -> None:
    """List the ZLUDA releases and aliases that the database knows."""
    database = _open()
    known, aliases = database.releases(), database.release_aliases()
    if format is Format.json:
        rows = [
            {"tag": item.tag, "date": item.date, "commit": item.commit, "main": item.main, "read": item.read}
            for item in known
        ]
        _print_json({"date": database.date, "releases": rows, "aliases": aliases})
        return
    names: dict[str, list[str]] = {}
    for alias, tag in aliases.items():
        names.setdefault(tag, []).append(alias)
    text = []
    for item in known:
        how = "not read: nothing is known" if not item.read else "read whole" if item.is_main else f"as {item.main}"
        text.append([item.tag, item.date[:10], item.commit[:12], how, ", ".join(names.get(item.tag, ()))])
    _show("", ["release", "date", "commit", "function bodies", "aliases"], text)


@app.command()
def coverage(release: _Release = None, format: _Format = Format.text) -> None:
    """Count the states of the exported functions, by library, for one or more releases (default: v6)."""
    database = _open()
    counts: dict[str, Any] = {}
    for name in release or ["v6"]:
        found = database.resolve_release(name)
        counts[found.tag] = {
            item.library: database.state_counts(found).get(item.library, {}) for item in database.libraries(found)
        }
    if format is Format.json:
        _print_json({"date": database.date, "releases": counts})
        return
    states = ["implemented", "partial", "no-op", "returns-error", "ends-process"]
    for tag, libraries in counts.items():
        rows = [
            [library, *(str(states_of.get(state, 0)) for state in states), str(sum(states_of.values()))]
            for library, states_of in libraries.items()
        ]
        if rows:
            _show(tag, ["library", *states, "exports"], rows)
        else:
            typer.echo(f"{tag} was not read: nothing is known about it")


def _facts(database: Database, name: str) -> dict[str, Any]:
    """Everything the database holds about one exact function name; empty where it holds nothing."""
    history = database.history(name)
    exports = database.exported_by([name]).get(name, ())
    hip = database.hipify(name)
    families = database.families([name]).get(name, ())
    calls = database.runtime_to_driver(name)
    entry_points = database.entry_points(name)
    if not (history or exports or hip or families or calls or entry_points):
        return {}
    facts: dict[str, Any] = {"name": name}
    facts["history"] = [
        {
            "library": item.library,
            "state": item.state,
            "since": item.since,
            # Between v4 and this tag nobody read: the state may be older than the table says.
            "since_may_be_older": item.since == database.first_read_after_gap,
            "until": item.until,
            "limit": item.limit or None,
            "source": item.source,
        }
        for item in history
    ]
    facts["not_on_windows"] = [
        {"library": library, "state": state, "releases": list(tags)}
        for library, state, tags in database.not_on_windows(name)
    ]
    facts["hip"] = None
    if hip is not None:
        facts["hip"] = {
            "name": hip.hip_name or None,
            "since": hip.hip_since or None,
            "removed": hip.hip_removed or None,
            "roc": hip.roc_name or None,
            "kind": hip.kind,
            "status": hip.status,
            "in_hip_6_4": hip.in_hip_6_4,
            "v2_signature_only": hip.v2_signature_only,
            "not_exported_on_windows": database.hip_export_gap(name),
            "source": database.source("hipify"),
        }
    facts["cuda"] = [{"library": item.library, "dll": item.dll, "version": item.version} for item in exports]
    facts["runtime"] = any(item.library.startswith("cudart") for item in exports)
    facts["families"] = list(dict.fromkeys(item.family for item in families))
    facts["driver_calls"] = list(dict.fromkeys(item.driver_function for item in calls if item.phase == "call"))
    facts["entry_points"] = [
        {"asked": item.name, "flags": item.flags, "min_cuda_version": item.min_cuda_version} for item in entry_points
    ]
    return facts


def explained(name: str) -> bool:
    """Tell people what any table knows of the function; False where none knows it."""
    facts = _facts(_open(), name)
    if facts:
        _explain(facts)
    return bool(facts)


def _with_state(name: str) -> str:
    """A driver function and its state in the newest upstream release."""
    states = [item.state for item in _open().history(name) if item.until is None and item.library == "nvcuda"]
    return f"{name} ({states[0]})" if states else f"{name} (not exported)"


def _span(item: dict[str, Any]) -> str:
    since = f"{item['since']} or earlier" if item["since_may_be_older"] else item["since"]
    return since if item["until"] == item["since"] else f"{since} to {item['until'] or 'now'}"


_COLUMNS = ["library", "releases", "state", "limit", "source"]


def _history_rows(facts: dict[str, Any]) -> list[list[str]]:
    return [
        [item["library"], _span(item), item["state"], item["limit"] or "", item["source"]] for item in facts["history"]
    ]


def _sentences(facts: dict[str, Any]) -> list[str]:
    """What is known beside the history, a line each."""
    said = []
    if not facts["history"] and facts["runtime"]:
        said.append(
            "NVIDIA's own CUDA runtime holds it, which no release of ZLUDA replaces on Windows; its driver calls, "
            "below with their state in the newest release, are what ZLUDA answers"
        )
    elif not facts["history"]:
        said.append("no release of ZLUDA exports it on Windows")
    for item in facts["not_on_windows"]:
        said.append(f"{item['library']} of {', '.join(item['releases'])} has it ({item['state']}), not for Windows")
    said.append(_hip_sentence(facts["hip"]))
    if facts["cuda"]:
        said.append("CUDA: exported by " + ", ".join(f"{item['dll']} {item['version']}" for item in facts["cuda"]))
    else:
        said.append("CUDA: exported by none of the NVIDIA DLLs that were read")
    if facts["families"]:
        said.append(f"workload: {', '.join(facts['families'])}")
    if facts["driver_calls"]:
        said.append(f"was seen to call: {', '.join(map(_with_state, facts['driver_calls']))}")
    if facts["entry_points"]:
        asked = dict.fromkeys(f"{item['asked']} from CUDA {item['min_cuda_version']}" for item in facts["entry_points"])
        said.append(f"cuGetProcAddress (newest main release) gives it for: {', '.join(asked)}")
    return said


def _hip_sentence(hip: dict[str, Any] | None) -> str:
    if hip is None:
        return "HIP: HIPIFY does not list this name"
    if not hip["name"]:
        return f"HIP: no counterpart ({hip['status']}); source {hip['source']}"
    notes = [
        f"since {hip['since']}" if hip["since"] else "",
        f"removed in {hip['removed']}" if hip["removed"] else "",
    ]
    notes += [f"rocm library: {hip['roc']}" if hip["roc"] else "", "in 6.4" if hip["in_hip_6_4"] else "not in 6.4"]
    if hip["v2_signature_only"]:
        notes.append("HIP has the _v2 signature only")
    if hip["not_exported_on_windows"]:
        notes.append(f"not exported on Windows: {hip['not_exported_on_windows']}")
    return f"HIP: {hip['name']} ({'; '.join(note for note in notes if note)}); source {hip['source']}"


def _explain(facts: dict[str, Any]) -> None:
    """What is known of a function, for people."""
    from zcheck.cli import people

    out = people.writer()
    if facts["history"]:
        people.table(out, facts["name"], _COLUMNS, _history_rows(facts))
    else:
        out.console.print(out.styled((facts["name"], "bold")))
    for sentence in _sentences(facts):
        out.hang(out.styled("- "), out.styled(sentence))
    people.show(out)


def _print_facts(facts: dict[str, Any]) -> None:
    from zcheck.cli import people

    if people.at_terminal():
        _explain(facts)
        return
    if facts["history"]:
        _show(facts["name"], _COLUMNS, _history_rows(facts))
    else:
        typer.echo(facts["name"])
    for sentence in _sentences(facts):
        typer.echo(sentence)


@app.command()
def show(
    name: Annotated[str, typer.Argument(metavar="FUNCTION", help="The exported name, exactly: cublasDgemm_v2.")],
    format: _Format = Format.text,
) -> None:
    """Print the whole history of one function: states by release, HIP counterpart, CUDA versions, sources."""
    from zcheck.errors import UsageError

    database = _open()
    facts = _facts(database, name)
    if not facts:
        near = database.suggestions(name)
        hint = f"; near it are {', '.join(near)}" if near else ""
        raise UsageError(f"no table knows a function called {name!r}{hint}")
    if format is Format.json:
        _print_json({"date": database.date, **facts})
    else:
        _print_facts(facts)


class Upstream(str, Enum):
    """What a checkout is of."""

    zluda = "zluda"
    hipify = "hipify"


@app.command("import")
def import_(
    upstream: Annotated[Upstream, typer.Argument(metavar="zluda|hipify", help="Which upstream the checkout is of.")],
    checkout: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of its Git checkout (ZLUDA: with tags).")],
    revision: Annotated[str, typer.Option(metavar="REVISION", help="HIPIFY: branch, tag or commit to read.")] = "HEAD",
    write: Annotated[bool, typer.Option("--write", help="Replace the tables; without it only compare.")] = False,
    tables: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(metavar="DIR", help="Folder of text tables instead of this installation's."),
    ] = None,
) -> None:
    """Make tables again from an upstream checkout and say how they differ from what is there."""
    from zcheck.coverage.importer import import_hipify, import_zluda, write_tables
    from zcheck.coverage.locate import locate
    from zcheck.errors import UsageError

    folder = tables
    if folder is None:
        location = locate("coverage")
        if location.packaged:
            raise UsageError("this installation carries no text tables; name their folder with --tables")
        folder = location.path
    if upstream is Upstream.zluda:
        made = import_zluda(checkout, folder)
        typer.echo(f"{len(made.revisions)} releases read, {made.revisions[0]} to {made.revisions[-1]}")
    else:
        made = import_hipify(checkout, folder, revision)
        typer.echo(f"commit {made.revisions[0]} read")
    typer.echo(f"{next(iter(made.texts))}: {made.same:,} rows agree, {len(made.different):,} differ")
    for where, name, read, there in made.different[:50]:
        typer.echo(f"  {where} {name}: {read}; the table says {there}")
    if len(made.different) > 50:
        typer.echo(f"  … and {len(made.different) - 50:,} more")
    if made.unread:
        typer.echo(f"not in the tables, so not read: {', '.join(made.unread)}")
    if write:
        written = write_tables(folder, made)
        typer.echo(f"written: {', '.join(written)}" if written else "nothing to write: the tables are as they were")
