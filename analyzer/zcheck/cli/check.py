"""``zcheck check APP``, the default verb."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from zcheck.errors import UsageError
from zcheck.model.base import Skipped

HASHED = {"cyclonedx", "issue"}
"""formats that name modules by their SHA-256, which takes a read of every byte; others show it where it is known"""
Zluda = Annotated[
    list[str] | None,
    typer.Option(
        "--zluda",
        metavar="RELEASE",
        envvar="ZCHECK_ZLUDA",
        help="A ZLUDA release (v6, latest, lshqqytiger-3.9.5 …); repeatable.",
    ),
]
LaunchMode = Annotated[
    str | None,
    typer.Option(
        "--launch-mode",
        envvar="ZCHECK_LAUNCH_MODE",
        metavar="MODE",
        help="zluda-exe (the release's launcher) or staged.",
    ),
]
HipSdk = Annotated[
    str | None, typer.Option("--hip-sdk", envvar="ZCHECK_HIP_SDK", metavar="VERSION", help="5.7 … 7.2, or therock.")
]
Gpu = Annotated[
    str | None, typer.Option("--gpu", envvar="ZCHECK_GPU", metavar="GFX", help="The GPU target, such as gfx1100.")
]
StackName = Annotated[
    str | None,
    typer.Option(
        "--stack", envvar="ZCHECK_STACK", metavar="NAME", help="A named stack: default, reference or therock."
    ),
]
FailOn = Annotated[
    str | None,
    typer.Option(
        "--fail-on",
        metavar="LEVEL",
        envvar="ZCHECK_FAIL_ON",
        help="Exit 1 from blocker (as usual), risk, setup or note on; or never.",
    ),
]
Baseline = Annotated[
    Path | None,
    typer.Option("--baseline", metavar="FILE", help="An earlier JSON report: what it knows does not fail."),
]
Redact = Annotated[
    bool | None,
    typer.Option("--redact/--no-redact", help="Take out user and machine names (as usual for what is shared)."),
]


def check(
    app: Annotated[
        Path | None, typer.Argument(metavar="APP", help="A program, a DLL, .pyd or .node, or a folder.")
    ] = None,
    zluda: Zluda = None,
    launch_mode: LaunchMode = None,
    hip_sdk: HipSdk = None,
    gpu: Gpu = None,
    stack: StackName = None,
    fmt: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="How to print the report.")] = "text",
    output: Annotated[
        list[str] | None,
        typer.Option("--output", "-o", metavar="FORMAT=FILE", help="Also write the report to a file; repeatable."),
    ] = None,
    tree: Annotated[bool, typer.Option("--tree", help="Show the dependency tree.")] = False,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show notes in full, every function, 20 evidence lines a finding.")
    ] = False,
    evidence: Annotated[
        bool, typer.Option("--evidence", help="Print the evidence, as lines or JSON, instead of a report.")
    ] = False,
    host: Annotated[
        Path | None,
        typer.Option(
            "--host",
            metavar="FILE_OR_ROOT",
            help="JSON of zcheck host, or a folder laid out like a system drive; none looks at no PC.",
        ),
    ] = None,
    zluda_dir: Annotated[
        str | None, typer.Option("--zluda-dir", metavar="DIR", help="The folder with ZLUDA's files on that PC.")
    ] = None,
    saved: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Judge saved evidence or a JSON report instead of APP."),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep facts of files for later runs.")] = True,
    fail_on: FailOn = None,
    baseline: Baseline = None,
    redact: Redact = None,
) -> None:
    """Say whether a program will run through ZLUDA, what stops it, and what to do next."""
    from zcheck.cli import output as out
    from zcheck.cli.baseline import fresh, read_baseline
    from zcheck.cli.cache_store import FactCache
    from zcheck.cli.config import load
    from zcheck.cli.data import coverage
    from zcheck.cli.entry import Analysis
    from zcheck.cli.known_pc import NO_PC, known_pc
    from zcheck.cli.pipeline import analyse, hash_modules, judge_analysis, not_loaded, together
    from zcheck.cli.progress import Progress
    from zcheck.cli.saved import check_evidence, evidence_text, read_saved
    from zcheck.cli.settings import chosen_stacks, fail_level, settings_said
    from zcheck.judge import exit_code

    config = load()
    level = fail_level(fail_on, config)
    known = read_baseline(baseline, config)
    out.check_format(fmt)
    files = out.outputs_of(output or ())
    if evidence:
        check_evidence(fmt, [name for name, _ in files])
    out.spare_inputs(files, app, saved, host)
    stacks = chosen_stacks(coverage(), config, zluda, launch_mode, hip_sdk, gpu, stack)
    pc = known_pc(host, zluda_dir)
    if pc is not None:
        stacks = pc.over(stacks, zluda, hip_sdk, gpu, stack or config.stacks)
    if (app is None) == (saved is None):
        raise UsageError("name a program or folder to check (zcheck app.exe), or a saved file with --from")
    analyses: list[Analysis]
    skipped: tuple[Skipped, ...] = ()
    if saved is not None:
        analyses, target = read_saved(saved)
    else:
        assert app is not None
        progress = Progress()
        bundle, analyses = analyse(app, stacks, progress, None if cache else FactCache(None))
        progress.done()
        target, skipped = app.name or str(app), (*bundle.skipped, *not_loaded(bundle, analyses))
    if evidence:
        out.write(evidence_text(analyses, fmt, redact or False))
        return
    if HASHED & {fmt, *(name for name, _ in files)}:
        for each in analyses:
            hash_modules(each)
    assumed = (*(pc.shown.said if pc is not None else (NO_PC,)), *settings_said(config))
    reports = [judge_analysis(each, stacks, each.entry, pc, assumed, config.ignores) for each in analyses]
    product = together(target, reports, skipped)
    how = out.options(redact, tree, verbose)
    out.save(product, files, how)
    out.show(product, fmt, how)
    code = exit_code([each for report in reports for each in fresh(report, known)], level)
    if code:
        raise typer.Exit(code)
