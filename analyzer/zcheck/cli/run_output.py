"""What a run says and writes: streams passed on, the exit code, reports and plans as text."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from zcheck.errors import EXIT_RUN_REFUSED

if TYPE_CHECKING:
    from zcheck.model.launch import Plan, RunReport


def exit_code(report: RunReport) -> int:
    """The program's own code as this system can pass it on; 124 for a timeout, as timeout(1) does."""
    code = report.exit.code
    if report.exit.timed_out:
        return 124
    if code is None:
        return EXIT_RUN_REFUSED
    if sys.platform == "win32":
        # The process' exit code is signed for Python, and unsigned for everybody else.
        return code - (1 << 32) if code & 0x80000000 else code
    return 128 - code if code < 0 else code & 0xFF


def redactor() -> Callable[[str], str]:
    """Takes the names of this machine and its user out of a text."""
    from zcheck.cli.names import local_names
    from zcheck.render.redact import redact

    known = local_names()
    return lambda text: redact(text, known)


def passer(stream: object) -> Callable[[bytes], None]:
    """Writes bytes to one of our own streams, at once."""
    raw = getattr(stream, "buffer", None)

    def write(block: bytes) -> None:
        if raw is not None:
            raw.write(block)
            raw.flush()
        else:
            stream.write(block.decode("utf-8", "replace"))  # type: ignore[attr-defined]

    return write


def say(text: str) -> None:
    """One line on stderr."""
    typer.echo(f"zcheck: {text}", err=True)


def summary(report: RunReport) -> None:
    """How it went, on stderr: only when it did not pass."""
    if report.outcome == "passed":
        return
    first = report.first_error
    if first is not None:
        say(f"first error: {first.text[:300]} ({first.meaning})")
    elif report.exit.code:
        say(f"it ended with {report.exit.hex}: {report.exit.meaning}")
    for note in report.notes:
        if note.startswith("it ended well"):
            say(note)


def written(report: RunReport, kind: str) -> str:
    """The report in a format."""
    from zcheck.launch import to_issue, to_json, to_markdown

    return {"json": to_json, "markdown": to_markdown, "issue": to_issue}[kind](report)


def plan_json(plan: Plan) -> str:
    """The plan as JSON."""
    import msgspec

    return json.dumps(msgspec.to_builtins(plan), indent=2, ensure_ascii=False) + "\n"


def plan_text(plan: Plan) -> str:
    """The plan for people: what would be started, with what, and what would be written."""
    from zcheck.launch.quoting import command_line

    lines = [f"Plan for {Path(plan.program).name} on {plan.stack or plan.release}"]
    if plan.refusals:
        lines += ["", "Refused:", *(f"  - {refusal.reason}" for refusal in plan.refusals)]
    lines += ["", f"Strategy   {plan.strategy or 'none'}", *(f"           {why}" for why in plan.why)]
    if plan.command:
        lines += [f"Command    {command_line(plan.command)}", f"Folder     {plan.cwd}"]
    lines += [f"ZLUDA      {plan.zluda_dir or 'no folder'} (file hashes: {plan.release_hashes})"]
    if plan.environment:
        lines += ["", "Environment, for the program only:"]
        lines += [f"  {change.name}={change.value}  ({change.why})" for change in plan.environment]
    if plan.stage:
        lines += ["", "Placed for the run, taken back afterwards:"]
        for file in plan.stage:
            how = "in place of the file there" if file.original else "new"
            lines.append(f"  {file.target}  ({how}, SHA-256 {file.sha256[:16]}…)")
    else:
        lines += ["", "Nothing is written into the program's folder."]
    if plan.preload:
        lines += ["", f"Loaded into the process first: {', '.join(plan.preload)}"]
    if plan.warnings:
        lines += ["", "Mind:", *(f"  - {warning}" for warning in plan.warnings)]
    return "\n".join(lines) + "\n"
