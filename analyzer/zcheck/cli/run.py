"""``zcheck run APP -- ARGS``: start a program through ZLUDA, watch it, leave nothing behind."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from zcheck.cli.check import Gpu, HipSdk, LaunchMode, StackName
from zcheck.cli.output import write_file
from zcheck.cli.run_output import exit_code, passer, plan_json, plan_text, redactor, say, summary, written
from zcheck.errors import EXIT_RUN_REFUSED, InputError, UsageError, ZcheckError

if TYPE_CHECKING:
    from zcheck.launch import Situation
    from zcheck.model.launch import Plan, RunReport, Strategy
    from zcheck.model.report import Report
    from zcheck.model.stack import Stack

REPORT_FORMATS = ("json", "markdown", "issue")


def run(
    app: Annotated[Path, typer.Argument(metavar="APP", help="The program to start.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGS", help="The program's own arguments, after --.")
    ] = None,
    zluda: Annotated[
        str | None, typer.Option("--zluda", metavar="RELEASE", help="The ZLUDA release in --zluda-dir (v6, latest …).")
    ] = None,
    zluda_dir: Annotated[
        Path | None, typer.Option("--zluda-dir", metavar="DIR", help="The folder with ZLUDA's files.")
    ] = None,
    zluda_sums: Annotated[
        Path | None,
        typer.Option("--zluda-sums", metavar="FILE", help="SHA-256 sums of the release's files, as sha256sum writes."),
    ] = None,
    launch_mode: LaunchMode = None,
    hip_sdk: HipSdk = None,
    hip_dir: Annotated[
        Path | None, typer.Option("--hip-dir", metavar="DIR", help="The HIP SDK folder that holds bin.")
    ] = None,
    gpu: Gpu = None,
    gpu_index: Annotated[
        int | None,
        typer.Option("--gpu-index", metavar="N", min=0, help="Show the program only this GPU (HIP's own number)."),
    ] = None,
    stack: StackName = None,
    strategy: Annotated[
        str | None,
        typer.Option(
            "--strategy", metavar="NAME", help="zluda-exe, path, stage or preload; chosen by the analysis if left out."
        ),
    ] = None,
    zluda_cc: Annotated[
        str | None, typer.Option("--zluda-cc", metavar="X.Y", help="Compute capability that ZLUDA reports.")
    ] = None,
    trace: Annotated[
        bool, typer.Option("--trace", help="Let zluda.exe write a trace (zcheck trace reads it).")
    ] = False,
    anyway: Annotated[
        bool, typer.Option("--anyway", help="Run in spite of a blocked verdict or missing HIP files.")
    ] = False,
    allow_inject: Annotated[
        bool, typer.Option("--allow-inject", help="Allow preload, which starts a thread in the program.")
    ] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not analyse the program first.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Print the plan and stop.")] = False,
    fmt: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="Of the plan: text or json.")] = "text",
    timeout: Annotated[
        float | None, typer.Option("--timeout", min=0.1, metavar="SECONDS", help="End the program after so long.")
    ] = None,
    cwd: Annotated[
        Path | None, typer.Option("--cwd", metavar="DIR", help="Folder to start it in; its own if left out.")
    ] = None,
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="FORMAT=FILE", help="Write the run report: json, markdown, issue."),
    ] = None,
    record: Annotated[
        bool, typer.Option("--record", help="Remember this run, so that the next check knows how it ended.")
    ] = False,
    include_args: Annotated[bool, typer.Option("--include-args", help="Put the arguments into the report.")] = False,
    full: Annotated[
        bool, typer.Option("--full", help="Report with output, and with names of people and machines.")
    ] = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Do not pass the program's output on.")] = False,
    data_dir: Annotated[
        Path | None, typer.Option("--data-dir", metavar="DIR", help="Where journals and recorded runs are kept.")
    ] = None,
) -> None:
    """Start a program through ZLUDA, in a way that leaves nothing behind, and report how it went.

    Ends with the program's own exit code, 124 when --timeout ended it, or 125 when zcheck itself refuses.
    """
    try:
        files = _outputs(output or [])
        _check_choices(strategy, fmt)
        situation, request_plan, report, stack_of = prepare(
            app, arguments or [], zluda, zluda_dir, zluda_sums, launch_mode, hip_sdk, hip_dir, gpu, gpu_index, stack,
            strategy, zluda_cc, trace, anyway, allow_inject, no_check, cwd,
        )  # fmt: skip
        if dry_run:
            typer.echo(plan_json(request_plan) if fmt == "json" else plan_text(request_plan), nl=False)
            if request_plan.refusals:
                raise typer.Exit(EXIT_RUN_REFUSED)
            return
        code = _start(
            situation, request_plan, report, stack_of, tuple(arguments or []), data_dir, timeout, files, record,
            include_args, full, quiet,
        )  # fmt: skip
    except ZcheckError as error:
        # Whatever went wrong before the program ran is zcheck's own refusal: 125, never taken for the program's code.
        error.exit_code = EXIT_RUN_REFUSED
        raise
    if code:
        raise typer.Exit(code)


def _outputs(pairs: list[str]) -> list[tuple[str, Path]]:
    found = []
    for pair in pairs:
        kind, separator, name = pair.partition("=")
        if not separator or not name or kind not in REPORT_FORMATS:
            raise UsageError(f"--output takes FORMAT=FILE with {', '.join(REPORT_FORMATS)}, not {pair!r}")
        found.append((kind, Path(name)))
    return found


def _check_choices(strategy: str | None, fmt: str) -> None:
    from zcheck.model.launch import STRATEGIES

    if strategy is not None and strategy not in STRATEGIES:
        raise UsageError(f"strategy {strategy!r} does not exist; choose one of {', '.join(STRATEGIES)}")
    if fmt not in ("text", "json"):
        raise UsageError(f"a plan has the formats text and json, not {fmt!r}")


def prepare(
    app: Path,
    arguments: list[str],
    zluda: str | None,
    zluda_dir: Path | None,
    zluda_sums: Path | None,
    launch_mode: str | None,
    hip_sdk: str | None,
    hip_dir: Path | None,
    gpu: str | None,
    gpu_index: int | None,
    named: str | None,
    strategy: str | None,
    zluda_cc: str | None,
    trace: bool,
    anyway: bool,
    allow_inject: bool,
    no_check: bool,
    cwd: Path | None,
) -> tuple[Situation, Plan, Report | None, Stack]:
    import msgspec

    from zcheck.cli import run_facts as facts
    from zcheck.cli.data import coverage
    from zcheck.cli.stacks import stacks_of
    from zcheck.launch import Demand, Request, Situation, System, demand, make_plan

    host = facts.this_pc(hip_dir, zluda_dir)
    program = facts.survey_program(app)
    hip = facts.hip_installation(host, hip_dir, gpu, gpu_index)
    shown = _release_shown(host) if zluda is None else None
    known_sdk = hip.version if hip.version in coverage().hip_sdk_versions() else None
    asked = zluda or shown
    stack = stacks_of(coverage(), [asked] if asked else (), launch_mode, hip_sdk or known_sdk, hip.gpu or gpu, named)[0]
    release = facts.release_files(stack.zluda, zluda_sums)
    if stack.launch_mode == "staged" and strategy is None:
        strategy = "stage"
    folder = facts.zluda_folder(release, zluda_dir, host, trace=trace)
    report, wanted, verdict, headline = None, Demand(), None, ""
    if program.kind == "pe" and not no_check:
        report, root = facts.analysis_of(Path(program.path), stack)
        wanted = demand(report, str(root))
        verdict, headline = facts.stack_report(report).verdict, facts.stack_report(report).headline
    chosen = cast("Strategy | None", strategy)
    variables = dict(os.environ)
    request = Request(
        arguments=tuple(arguments),
        cwd=str(cwd.absolute()) if cwd else "",
        strategy=chosen,
        anyway=anyway,
        allow_inject=allow_inject,
        gpu_index=gpu_index,
        zluda_cc=zluda_cc,
        trace=trace,
        switches=facts.switches(report, release, chosen, variables),
    )
    short = ""
    if sys.platform == "win32" and folder.path and not folder.path.isascii():
        from zcheck.launch.win32 import short_path

        found = short_path(folder.path)
        short = found if found.isascii() else ""
    windows = sys.platform == "win32"
    situation = Situation(
        program=program,
        release=release,
        zluda=folder,
        hip=hip,
        system=System(windows, "" if windows else facts.wine_program(), variables),
        stack=stack.id,
        verdict=verdict,
        headline=headline,
        demand=wanted,
        places=facts.places(release, wanted) if wanted.root else (),
        zluda_short=short,
    )
    plan = make_plan(situation, request)
    if host is None and program.kind == "pe" and not windows:
        plan = msgspec.structs.replace(plan, warnings=(*plan.warnings, "under Wine; no GPU of this PC was looked at"))
    return situation, plan, report, stack


def _release_shown(host: object) -> str | None:
    from zcheck.model.host import Host

    if not isinstance(host, Host):
        return None
    from zcheck.host.evidence import stack_overrides

    return stack_overrides(host).zluda or None


def _start(
    situation: Situation,
    plan: Plan,
    report: Report | None,
    stack: Stack,
    arguments: tuple[str, ...],
    data_dir: Path | None,
    timeout: float | None,
    files: list[tuple[str, Path]],
    keep: bool,
    include_args: bool,
    full: bool,
    quiet: bool,
) -> int:
    from zcheck.cli import run_facts as facts
    from zcheck.launch import default_data_dir, execute, make_report, record, redacted, refuse
    from zcheck.launch.records import prune

    refuse(plan)
    data = data_dir or default_data_dir()
    for warning in plan.warnings:
        say(warning)
    sinks = {} if quiet else {"stdout": passer(sys.stdout), "stderr": passer(sys.stderr)}
    done = execute(
        plan,
        data,
        facts.error_rules(),
        situation.system.variables,
        timeout=timeout,
        sinks=sinks,  # type: ignore[arg-type]
        said=say,
    )
    predicted = report.stacks[0].verdict if report else ""
    found = make_report(
        done,
        plan,
        situation.program,
        situation.hip,
        zluda=stack.zluda,
        zluda_files=facts.files_used(situation.release, situation.zluda),
        predicted=predicted,
        arguments=arguments if include_args else None,
    )
    found = _with_missing(found, report)
    shared = found if full else redacted(found, redactor())
    for kind, path in files:
        write_file(path, written(shared, kind))
    if keep:
        try:
            # Kept on this PC only, but people copy such files into issues: redacted all the same.
            record(shared, data)
        except OSError as error:
            raise InputError(f"{data}: the run could not be recorded ({error.strerror or error})") from None
    prune(data)
    summary(found)
    return exit_code(found)


def _with_missing(found: RunReport, report: Report | None) -> RunReport:
    """Where Windows ended the process for want of a DLL, which it does without a name: those not found beforehand."""
    import msgspec

    first = found.first_error
    if report is None or first is None or first.rule not in ("exit-loader", "exit-delay-load"):
        return found
    names = sorted({module.name for module in report.modules if {"missing", "absent"} & set(module.role.values())})
    if not names:
        return found
    meaning = f"{first.meaning}; the analysis did not find {', '.join(names)}"
    return msgspec.structs.replace(found, first_error=msgspec.structs.replace(first, meaning=meaning))
