"""Does what a plan says: locks, recovers, stages, starts, waits, takes back, reports."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timezone
from pathlib import Path

from zcheck.errors import EXIT_RUN_REFUSED, ZcheckError
from zcheck.launch import environment, exitcodes, journal
from zcheck.launch.disk import Disk, sha256_of
from zcheck.launch.firsterror import Finder
from zcheck.launch.lock import FolderLock
from zcheck.launch.process import Ending, start, supervise
from zcheck.launch.undo import undo
from zcheck.model.base import Record
from zcheck.model.launch import ErrorRule, ExitReport, FirstError, Journal, Plan, Recovery, Restored, Stream


class Refused(ZcheckError):
    """A plan with refusals was to be applied, or an earlier run is still in the way."""

    exit_code = EXIT_RUN_REFUSED


class Run(Record, frozen=True):
    """What a run came to; report/ makes the run report of it."""

    id: str
    started: str
    ended: str
    ending: Ending
    exit: ExitReport
    first_error: FirstError | None
    staging: tuple[Restored, ...]
    staging_done: bool
    logs: str
    windows: bool
    wine: bool
    notes: tuple[str, ...] = ()


def now() -> str:
    """The present time, UTC, in seconds."""
    return datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")


def refuse(plan: Plan) -> None:
    """Raises Refused with all reasons when the plan has any."""
    if plan.refusals:
        raise Refused("; ".join(refusal.reason for refusal in plan.refusals))


def execute(
    plan: Plan,
    data: Path,
    rules: Sequence[ErrorRule],
    variables: Mapping[str, str],
    *,
    timeout: float | None = None,
    sinks: Mapping[Stream, Callable[[bytes], None]] | None = None,
    disk: Disk | None = None,
    said: Callable[[str], None] | None = None,
) -> Run:
    """Applies a plan and waits for its end. ``data``: the user's data folder; ``variables``: what the child inherits.

    ``sinks`` get the child's output as it comes, ``said`` one sentence for each thing that the user should know now.
    Raises Refused, Busy, StageError or StartError; whatever it raises, the program's folder is as before or a journal
    says what is to be taken back.
    """
    refuse(plan)
    tell = said or (lambda text: None)
    run_id = secrets.token_hex(6)
    folders = {os.path.dirname(plan.program), *(os.path.dirname(file.target) for file in plan.stage)}  # noqa: PTH120
    with FolderLock(folders, data):
        for recovery in undo(data, Path(plan.program), disk=disk, locked=True):
            if not recovery.done:
                raise Refused(
                    f"{recovery.program}: an earlier run's files are still in place "
                    f"({recovery.note or recovery.files[0].note}); run `zcheck undo` once the program has ended"
                )
            tell(f"took back what an earlier run had left ({len(recovery.files)} files)")
        if _changed(plan):
            raise Refused(f"{plan.program}: changed since it was analysed; run zcheck again")
        journal.check(plan.stage)
        logs = data / "runs" / run_id
        logs.mkdir(parents=True, exist_ok=True)
        opened = journal.make_journal(plan.program, plan.stage, run_id=run_id) if plan.stage else None
        if opened:
            journal.stage(opened, data, disk)
        try:
            return _run(plan, data, rules, variables, timeout, sinks, disk, tell, run_id, logs, opened)
        except BaseException:
            if opened:
                journal.recover(opened, data, disk)
            raise


def _changed(plan: Plan) -> bool:
    try:
        return sha256_of(Path(plan.program)) != plan.program_sha256
    except OSError:
        return True


def _run(
    plan: Plan,
    data: Path,
    rules: Sequence[ErrorRule],
    variables: Mapping[str, str],
    timeout: float | None,
    sinks: Mapping[Stream, Callable[[bytes], None]] | None,
    disk: Disk | None,
    tell: Callable[[str], None],
    run_id: str,
    logs: Path,
    opened: Journal | None,
) -> Run:
    windows = sys.platform == "win32"
    wine = not windows and bool(plan.command) and _is_wine(plan)
    child = environment.apply(variables, plan.environment, ignore_case=windows)
    if wine:
        # Wine reports each DLL that it loads; streams takes these lines out of the program's own output
        old = variables.get("WINEDEBUG", "-all")
        child["WINEDEBUG"] = f"{old},+loaddll,err+module" if old else "+loaddll"
    finder = Finder(rules)
    notes: list[str] = []
    if opened and (lost := journal.verify(opened)):
        raise Refused(f"{', '.join(lost)}: gone or changed right after it was placed; an antivirus program?")
    started = now()
    tree = start(plan.command, child, plan.cwd, run_id, preload=plan.preload)
    try:
        ending = supervise(
            tree,
            timeout=timeout,
            logs=logs,
            sinks=sinks,
            line=finder.line,
            wine=wine,
            waiting=lambda: tell("the program has ended, waiting for processes that it started (Ctrl+C ends them)"),
        )
    finally:
        tree.close()
    ended = now()
    if opened and (lost := journal.verify(opened)):
        notes.append(f"changed or gone during the run: {', '.join(Path(name).name for name in lost)}")
    recovery = journal.recover(opened, data, disk) if opened else Recovery(run_id, plan.program, (), True)
    if not recovery.done:
        tell("some files are still in use; run `zcheck undo` once the program has ended")
    native = windows or wine
    end = ExitReport(
        code=ending.code,
        hex="" if ending.code is None else f"{exitcodes.unsigned(ending.code):#010x}",
        meaning="ended by zcheck when its time was up"
        if ending.timed_out
        else exitcodes.meaning(ending.code, windows=windows, wine=wine),
        timed_out=ending.timed_out,
        seconds=ending.seconds,
        interrupted=ending.interrupted,
    )
    first = finder.result(end, seconds=timeout, wine=wine)
    return Run(
        run_id, started, ended, ending, end, first, recovery.files, recovery.done, str(logs), native, wine, tuple(notes)
    )


def _is_wine(plan: Plan) -> bool:
    return Path(plan.command[0]).name.lower().startswith("wine")
