"""``zcheck trace FOLDER|LOG``: what a ZLUDA trace says, and whether the prediction foresaw it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zcheck.cli.files import read_file
from zcheck.errors import DataError, UsageError

if TYPE_CHECKING:
    from zcheck.model.report import Report
    from zcheck.model.trace import TraceReport


def trace(
    place: Annotated[Path, typer.Argument(metavar="FOLDER|LOG", help="A trace folder (with log.txt), or a log of it.")],
    against: Annotated[
        Path | None, typer.Option("--against", metavar="REPORT", help="A JSON report of zcheck on the same program.")
    ] = None,
    fmt: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")] = "text",
    all_functions: Annotated[bool, typer.Option("--all", help="List every function, not the first forty.")] = False,
) -> None:
    """Read a trace of zluda.exe --zluda-trace: functions called, the first error, failing launches, unknown PTX."""
    import msgspec

    from zcheck.launch.trace import compare, read_trace, trace_logs

    if fmt not in ("text", "json"):
        raise UsageError(f"trace has the formats text and json, not {fmt!r}")
    report = _report(against) if against else None
    found = [read_trace(log) for log in trace_logs(place)]
    if report is not None:
        found = [msgspec.structs.replace(each, comparison=compare(each, report)) for each in found]
    if fmt == "json":
        product = [msgspec.to_builtins(each) for each in found]
        typer.echo(json.dumps(product[0] if len(product) == 1 else product, indent=2, ensure_ascii=False))
    else:
        typer.echo("\n".join(text(each, all_functions) for each in found), nl=False)


def _report(path: Path) -> Report:
    import msgspec

    from zcheck.model.report import Applications, Report

    data = read_file(path)
    try:
        return msgspec.json.decode(data, type=Report)
    except msgspec.DecodeError as error:
        try:
            many = msgspec.json.decode(data, type=Applications)
        except msgspec.DecodeError:
            raise DataError(f"{path}: is no JSON report of zcheck ({error})") from None
        if len(many.applications) != 1:
            raise UsageError(
                f"{path}: holds {len(many.applications)} applications; save a report on one program"
            ) from None
        return many.applications[0]


def text(found: TraceReport, everything: bool = False) -> str:
    """The trace for people."""
    functions = found.functions if everything else found.functions[:40]
    lines = [f"{found.log}: {found.calls} calls of {len(found.functions)} functions"]
    if found.first_error:
        first = found.first_error
        kernel = f", kernel {first.kernel}" if first.kernel else ""
        lines += ["", f"First error: {first.name} -> {first.status} (line {first.line}{kernel})"]
    else:
        lines += ["", "No call failed."]
    if found.failed_launches:
        lines += ["", "Failing launches:"]
        lines += [
            f"  line {c.line}: {c.kernel or 'a kernel without a name'}: {c.status}" for c in found.failed_launches
        ]
    if found.unknown_output:
        last = found.unknown_output[-1]
        lines += ["", f"{len(found.unknown_output)} calls have no status; the last is {last.name} in line {last.line}"]
    if found.modules:
        lines += ["", "PTX that ZLUDA's parser does not know:"]
        for module in found.modules:
            lines += [f"  {module.file}", *(f"    {problem}" for problem in module.problems)]
    lines += ["", "Functions:"]
    for item in functions:
        statuses = ", ".join(f"{status} {count}" for status, count in item.statuses.items())
        lines.append(f"  {item.calls:7} {item.name}  {statuses}")
        lines += [f"          {error}" for error in item.errors]
    if len(functions) < len(found.functions):
        lines.append(f"  … {len(found.functions) - len(functions)} more (--all)")
    if found.comparison:
        both = found.comparison
        lines += ["", f"Against the report on {both.report}:"]
        lines.append(f"  predicted and called  {len(both.predicted_and_called)}")
        lines.append(f"  predicted only        {len(both.predicted_only)}")
        lines.append(f"  called, not predicted {len(both.unforeseen)}")
        if both.unforeseen:
            lines.append(f"    {', '.join(both.unforeseen)}")
            lines.append("    This is a fault of zcheck, or of a module that was not analysed: please report it.")
    lines += [f"Note: {problem.path}: {problem.reason}" for problem in found.problems]
    return "\n".join(lines) + "\n"
