"""``zcheck ab``: one program on two stacks, run in turn, and whether the difference is more than chance."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from zcheck.errors import EXIT_RUN_REFUSED, InputError, UsageError, ZcheckError

if TYPE_CHECKING:
    from zcheck.launch.ab import AbReport

_LARGEST_LOG = 64 * 1024 * 1024


def ab(
    metric: Annotated[
        str, typer.Option("--metric", metavar="REGEX", help="Finds the number in the output: '([0-9.]+) steps/s'.")
    ],
    app: Annotated[Path | None, typer.Argument(metavar="APP", help="The program to run on both.")] = None,
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="-- ARGS", help="The program's own arguments, after --.")
    ] = None,
    a_dir: Annotated[Path | None, typer.Option("--a-dir", metavar="DIR", help="ZLUDA folder of A.")] = None,
    b_dir: Annotated[Path | None, typer.Option("--b-dir", metavar="DIR", help="ZLUDA folder of B.")] = None,
    a_zluda: Annotated[str | None, typer.Option("--a-zluda", metavar="RELEASE", help="ZLUDA release of A.")] = None,
    b_zluda: Annotated[str | None, typer.Option("--b-zluda", metavar="RELEASE", help="ZLUDA release of B.")] = None,
    hip_dir: Annotated[Path | None, typer.Option("--hip-dir", metavar="DIR", help="HIP SDK of both.")] = None,
    b_hip_dir: Annotated[Path | None, typer.Option("--b-hip-dir", metavar="DIR", help="Another HIP SDK for B.")] = None,
    a_log: Annotated[
        list[Path] | None, typer.Option("--a-log", metavar="FILE", help="Output of a run of A, instead of running it.")
    ] = None,
    b_log: Annotated[
        list[Path] | None, typer.Option("--b-log", metavar="FILE", help="Output of a run of B; repeatable.")
    ] = None,
    runs: Annotated[int, typer.Option("--runs", "-n", metavar="N", min=1, max=1000, help="Runs a side.")] = 5,
    drop: Annotated[
        str,
        typer.Option(
            "--drop",
            metavar="WHAT",
            help="Leave out as warming up: iteration (first value of each run), run (first), none.",
        ),
    ] = "iteration",
    strategy: Annotated[str | None, typer.Option("--strategy", metavar="NAME", help="As for zcheck run.")] = None,
    gpu_index: Annotated[int | None, typer.Option("--gpu-index", metavar="N", min=0, help="As for zcheck run.")] = None,
    timeout: Annotated[
        float | None, typer.Option("--timeout", metavar="SECONDS", min=0.1, help="End a run after so long.")
    ] = None,
    anyway: Annotated[bool, typer.Option("--anyway", help="As for zcheck run.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not analyse the program first.")] = False,
    fmt: Annotated[str, typer.Option("--format", "-f", metavar="FORMAT", help="text or json.")] = "text",
    data_dir: Annotated[Path | None, typer.Option("--data-dir", metavar="DIR", help="As for zcheck run.")] = None,
) -> None:
    """Compare two stacks on one program: runs in turn, medians, spread, difference, rank test."""
    from zcheck.launch.ab import compare, metric_values, sample

    if fmt not in ("text", "json"):
        raise UsageError(f"ab has the formats text and json, not {fmt!r}")
    if drop not in ("iteration", "run", "none"):
        raise UsageError(f"--drop {drop!r} does not exist; choose iteration, run or none")
    metric_values("", metric)
    if a_log or b_log:
        if app is not None or not (a_log and b_log):
            raise UsageError("give logs of both sides (--a-log, --b-log) and no program, or a program and no logs")
        outputs = {"A": [_read(path) for path in a_log], "B": [_read(path) for path in b_log]}
        failed = {"A": 0, "B": 0}
    else:
        if app is None or a_dir is None or b_dir is None:
            raise UsageError("name the program, and the ZLUDA folders to compare with --a-dir and --b-dir")
        sides = {"A": (a_dir, a_zluda, hip_dir), "B": (b_dir, b_zluda, b_hip_dir or hip_dir)}
        try:
            outputs, failed = _run(
                app, arguments or [], sides, runs, strategy, gpu_index, timeout, anyway, no_check, data_dir
            )
        except ZcheckError as error:
            error.exit_code = EXIT_RUN_REFUSED
            raise
    samples = {}
    for side, texts in outputs.items():
        kept, dropped = _values([metric_values(text, metric) for text in texts], drop)
        samples[side] = sample(side, kept, dropped, failed[side])
    report = compare(metric, samples["A"], samples["B"])
    typer.echo(_json(report) if fmt == "json" else text(report), nl=False)


def _read(path: Path) -> str:
    try:
        if path.stat().st_size > _LARGEST_LOG:
            raise InputError(f"{path}: too large for a log ({_LARGEST_LOG // 1024 // 1024} MiB at most)")
        return path.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None


def _values(per_run: list[list[float]], drop: str) -> tuple[list[float], list[float]]:
    """Values that count, and those left out. ``iteration`` drops the first value of each run that has several."""
    kept: list[float] = []
    dropped: list[float] = []
    for number, values in enumerate(per_run):
        if drop == "run" and number == 0:
            dropped += values
        elif drop == "iteration" and len(values) > 1:
            dropped.append(values[0])
            kept += values[1:]
        else:
            kept += values
    if drop == "iteration" and not dropped and len(kept) > 1:  # one value a run: the first run warms up
        dropped.append(kept.pop(0))
    return kept, dropped


def _run(
    app: Path,
    arguments: list[str],
    sides: dict[str, tuple[Path, str | None, Path | None]],
    runs: int,
    strategy: str | None,
    gpu_index: int | None,
    timeout: float | None,
    anyway: bool,
    no_check: bool,
    data_dir: Path | None,
) -> tuple[dict[str, list[str]], dict[str, int]]:
    from zcheck.cli import run_facts as facts
    from zcheck.cli.run import prepare
    from zcheck.cli.run_output import say
    from zcheck.launch import default_data_dir, execute, refuse
    from zcheck.launch.ab import interleaved

    plans = {}
    for side, (folder, release, hip) in sides.items():
        prepared = prepare(
            app, arguments, release, folder, None, None, None, hip, None, gpu_index, None, strategy, None, False,
            anyway, False, no_check, None,
        )  # fmt: skip
        refuse(prepared[1])
        plans[side] = prepared
    data, rules = data_dir or default_data_dir(), facts.error_rules()
    outputs: dict[str, list[str]] = {"A": [], "B": []}
    failed = {"A": 0, "B": 0}
    for number, side in interleaved(runs):
        situation, plan, _, _ = plans[side]
        done = execute(plan, data, rules, situation.system.variables, timeout=timeout, said=say)
        if done.exit.interrupted:
            raise typer.Exit(130)
        if done.exit.code or done.exit.timed_out:
            failed[side] += 1
            why = done.first_error.text if done.first_error else done.exit.meaning
            say(f"run {number + 1} of {side} failed: {why}")
            continue
        outputs[side].append("\n".join(_read(Path(done.logs) / name) for name in ("stdout.txt", "stderr.txt")))
        say(f"run {number + 1} of {side}: {done.exit.seconds:.1f} s")
    return outputs, failed


def _json(report: AbReport) -> str:
    import msgspec

    return json.dumps(msgspec.to_builtins(report), indent=2) + "\n"


def text(report: AbReport) -> str:
    """The comparison for people."""
    lines = []
    for side in (report.a, report.b):
        spread = f"{side.minimum:g} to {side.maximum:g}"
        middle = f", middle half {side.quartiles[0]:g} to {side.quartiles[1]:g}" if side.quartiles else ""
        left = f", {len(side.dropped)} left out" if side.dropped else ""
        lines.append(f"{side.name}: median {side.median:g} of {len(side.values)} ({spread}{middle}{left})")
    lines.append(f"B against A: {report.change:+.2f} %")
    how = "exact" if report.exact else "normal approximation"
    verdict = "a difference" if report.p < 0.05 else "no difference that these runs could show"
    lines.append(f"Rank test (Mann-Whitney, {how}): p = {report.p:.4g}: {verdict}")
    lines += [f"Note: {note}" for note in report.notes]
    return "\n".join(lines) + "\n"
