"""``zcheck audit FOLDER``: every application below a folder, one row each."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from zcheck.cli.check import Baseline, FailOn, Gpu, HipSdk, LaunchMode, Redact, StackName, Zluda
from zcheck.errors import UsageError

if TYPE_CHECKING:
    from zcheck.cli.audit_task import Task, TaskResult
    from zcheck.cli.ignores import Ignore
    from zcheck.model.audit import Application
    from zcheck.model.base import Skipped
    from zcheck.model.host import Host
    from zcheck.model.report import Verdict
    from zcheck.model.stack import Stack

INTERRUPTED = 130


def audit(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="A folder with applications, at any depth.")],
    zluda: Zluda = None,
    launch_mode: LaunchMode = None,
    hip_sdk: HipSdk = None,
    gpu: Gpu = None,
    stack: StackName = None,
    only: Annotated[
        Optional[list[str]],  # noqa: UP045 (typer reads annotations at run time)
        typer.Option("--only", metavar="VERDICT", help="Show applications of this verdict only; repeatable."),
    ] = None,
    sort: Annotated[str, typer.Option("--sort", metavar="BY", help="verdict, path, cause, size or cuda.")] = "verdict",
    since: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option("--since", metavar="FILE", help="An earlier audit as JSON: say what changed."),
    ] = None,
    fmt: Annotated[
        str, typer.Option("--format", "-f", metavar="FORMAT", help="text, json, csv, markdown or html.")
    ] = "text",
    output: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option(
            "--output", "-o", metavar="FORMAT=FILE", help="Also write to a file; html=DIR writes a page for each row."
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="List every finding and name.")] = False,
    jobs: Annotated[
        Optional[int],  # noqa: UP045
        typer.Option(
            "--jobs", "-j", metavar="N", envvar="ZCHECK_JOBS", help="Processes; one for each processor unless given."
        ),
    ] = None,
    cluster: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(
            "--cluster",
            metavar="ADDRESS",
            envvar="ZCHECK_CLUSTER",
            help="Use dask workers: tcp://HOST:PORT, or local[N].",
        ),
    ] = None,
    cache: Annotated[bool, typer.Option(help="Keep facts and rows for later runs.")] = True,
    host: Annotated[
        Optional[Path],  # noqa: UP045
        typer.Option(
            "--host", metavar="FILE_OR_ROOT", help="JSON of zcheck host for the PC they would run on; none by itself."
        ),
    ] = None,
    fail_on: FailOn = None,
    baseline: Baseline = None,
    redact: Redact = None,
) -> None:
    """Say which of the applications below a folder will run through ZLUDA, and what the others wait for."""
    from zcheck.cli import audit_output as out
    from zcheck.cli.audit_build import SORTS, build_audit
    from zcheck.cli.audit_rows import merge
    from zcheck.cli.config import load
    from zcheck.cli.data import coverage
    from zcheck.cli.known_pc import NO_PC, known_pc
    from zcheck.cli.output import spare_inputs
    from zcheck.cli.settings import chosen_stacks, fail_level, settings_said
    from zcheck.discover import find_applications
    from zcheck.model.report import VERDICTS
    from zcheck.render.audit import AUDIT_FORMATS

    config = load()
    level = fail_level(fail_on, config)
    if fmt not in AUDIT_FORMATS:
        raise UsageError(f"format {fmt!r} does not exist for an audit; choose one of {', '.join(AUDIT_FORMATS)}")
    if sort not in SORTS:
        raise UsageError(f"--sort {sort!r} is unknown; choose one of {', '.join(SORTS)}")
    wanted: list[Verdict] = []
    for word in (part.strip() for text in only or () for part in text.split(",")):
        if word not in VERDICTS:
            raise UsageError(f"--only {word!r} is no verdict; choose one of {', '.join(VERDICTS)}")
        wanted.append(word)
    if jobs is not None and jobs < 1:
        raise UsageError("--jobs takes one process or more")
    outputs = out.outputs_of(output or ())
    spare_inputs(outputs, since, Path(baseline) if baseline else None, host)
    stacks = chosen_stacks(coverage(), config, zluda, launch_mode, hip_sdk, gpu, stack)
    pc = known_pc(host, None) if host is not None else None
    if pc is not None:
        stacks = pc.over(stacks, zluda, hip_sdk, gpu, stack or config.stacks)
    before = out.read_audit(since) if since else None
    known = out.read_audit(Path(baseline or config.audit_baseline)) if baseline or config.audit_baseline else None
    found, skipped = find_applications(folder)
    pages = any(name == "html" for name, _ in outputs)
    tasks = _tasks(folder, found, stacks, config.ignores, pages, pc.host if pc is not None else None)
    results, complete = _run(tasks, jobs, cluster, cache)
    rows = merge(
        made
        for result in sorted(results, key=lambda result: result.number)
        for made in zip(result.rows, result.exits, result.pages or ("",) * len(result.rows), strict=True)
    )
    skipped += [item for result in results for item in result.skipped]
    skipped += _left(tasks, results)
    del tasks, found, results  # a report of very many rows needs the room
    named = out.page_names([row for row, _, _ in rows]) if pages else [""] * len(rows)
    linked = [out.with_page(row, name) for (row, _, _), name in zip(rows, named, strict=True)]
    product = build_audit(
        folder.name or str(folder),
        coverage().date,
        stacks,
        linked,
        skipped,
        sort=sort,
        only=wanted,
        complete=complete,
        assumptions=(*(pc.shown.said if pc is not None else (NO_PC,)), *settings_said(config)),
        before=before,
        advice=_advice(cache),
    )
    how = out.options(redact, verbose)
    out.save(product, outputs, how, dict(zip(named, (page for _, _, page in rows), strict=True)))
    out.show(product, fmt, how)
    code = out.exit_code(rows, level, known)
    if not complete:
        typer.echo("zcheck: interrupted; what was done is kept, the same command goes on from there", err=True)
        code = INTERRUPTED
    if code:
        raise typer.Exit(code)


def _advice(keep: bool) -> dict[str, str]:
    """What the rules advise without naming a program; from the cache, since a warm audit needs the rules for nothing
    else."""
    from zcheck.cli.audit_build import advice_of
    from zcheck.cli.cache_store import FactCache, default_path
    from zcheck.cli.cache_version import data_version
    from zcheck.cli.data import rule_set

    with FactCache(default_path() if keep else None) as cache:
        key = cache.key("advice", data_version())
        known = cache.value(key, dict[str, str])
        if known is None:
            known = advice_of(rule_set(examples=False))
            cache.put_value(key, known)
    return known


def _tasks(
    folder: Path,
    found: Sequence[Application],
    stacks: Sequence[Stack],
    ignores: Sequence[Ignore],
    pages: bool,
    host: Host | None,
) -> list[Task]:
    from zcheck.cli.audit_task import Task
    from zcheck.discover import bundles

    tasks: list[Task] = []
    root = Path(_absolute(folder))
    for application in found:
        for bundle in bundles(root, application):
            tasks.append(
                Task(
                    number=len(tasks),
                    place=application.path,
                    kind=application.kind,
                    bundle=bundle,
                    stacks=tuple(stacks),
                    ignores=tuple(ignores),
                    pages=pages,
                    size=application.size,
                    files=len(application.files),
                    host=host,
                )
            )
    return tasks


def _absolute(folder: Path) -> str:
    """The folder for other processes, whose current folder may be another; links stay as they are."""
    from zcheck.cli.paths import long_path

    return long_path(os.path.abspath(folder))  # noqa: PTH100


def _work(task: Task) -> int:
    from zcheck.cli.audit_progress import weight

    return weight(sum(file.size for file in task.bundle.files if file.kind == "pe"), len(task.bundle.entries))


def _run(tasks: list[Task], jobs: int | None, cluster: str | None, keep: bool) -> tuple[list[TaskResult], bool]:
    """The results, and whether all were reached."""
    import msgspec

    from zcheck.cli.audit_progress import AuditProgress
    from zcheck.cli.audit_rows import Sharing

    work = {task.number: _work(task) for task in tasks}
    # Large ones first: what is left at the end is small, so that no process waits long for another.
    order = sorted(tasks, key=lambda task: (-work[task.number], task.number))
    progress = AuditProgress(len(tasks), sum(work.values()))
    results: list[TaskResult] = []
    sharing = Sharing()
    try:
        for result in _stream(order, jobs, cluster, keep):
            results.append(msgspec.structs.replace(result, rows=tuple(sharing.row(row) for row in result.rows)))
            progress.step(work[result.number], result.warm)
    except KeyboardInterrupt:
        return results, False
    finally:
        progress.close()
    return results, True


def _stream(tasks: list[Task], jobs: int | None, cluster: str | None, keep: bool) -> Iterator[TaskResult]:
    from zcheck.cli.audit_run import large_files, processors, run_here, run_processes
    from zcheck.cli.cache_store import FactCache, default_path
    from zcheck.cli.data import coverage

    if cluster is not None:
        if jobs is not None:
            raise UsageError("--jobs is for this machine's processes; with --cluster the workers decide")
        from zcheck.cli.cluster import connect, run_cluster

        with connect(cluster) as client:
            workers = max(1, sum(client.nthreads().values()))
            large = large_files(tasks, workers, lambda name: coverage().library_of(name) is not None)
            yield from run_cluster(tasks, client, large)
        return
    with ExitStack() as stack:
        path = default_path() if keep else None
        if path is None:  # readers still share what they read, for the time of this run
            path = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="zcheck-"))) / "facts.sqlite"
        cache = stack.enter_context(FactCache(path))
        count = min(jobs or processors(), max(1, sum(len(task.bundle.entries) for task in tasks)))
        large = large_files(tasks, count, lambda name: coverage().library_of(name) is not None)
        if count == 1 or (len(tasks) == 1 and not large):
            yield from run_here(tasks, cache)
        else:
            yield from run_processes(tasks, count, path if cache.usable else None, large)


def _left(tasks: Sequence[Task], results: Sequence[TaskResult]) -> list[Skipped]:
    from zcheck.model.base import Skipped

    done = {result.number for result in results}
    return [
        Skipped(path=task.place or ".", reason="not reached before the interrupt")
        for task in tasks
        if task.number not in done
    ]
