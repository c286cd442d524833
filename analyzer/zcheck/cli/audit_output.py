"""Audits to the terminal, to files and folders, and back from a file."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from zcheck.cli.audit_rows import Made, worst_exit
from zcheck.cli.names import local_names
from zcheck.cli.output import named_once, wants_file, write, write_file
from zcheck.errors import InputError, UsageError
from zcheck.judge import FAIL_ON
from zcheck.judge.exit_code import FailOn
from zcheck.model.audit import Audit, AuditRow
from zcheck.render import RenderOptions, terminal_options
from zcheck.render.audit import AUDIT_FORMATS, audit_from_json, render_audit

INDEX = "index.html"
_LARGEST = 1024 * 1024 * 1024


def outputs_of(pairs: Sequence[str]) -> list[tuple[str, Path]]:
    """``FORMAT=FILE`` as pairs; raises UsageError for an unknown format or a missing name."""
    found = []
    for pair in pairs:
        fmt, separator, name = pair.partition("=")
        if not separator or not name:
            raise UsageError(f"--output takes FORMAT=FILE (html=DIR), not {pair!r}")
        if fmt not in AUDIT_FORMATS:
            raise UsageError(f"--output {pair!r}: there is no format {fmt!r} of an audit; choose one of "
                             f"{', '.join(AUDIT_FORMATS)}")  # fmt: skip
        found.append((fmt, Path(name)))
        if fmt != "html":
            wants_file(pair, Path(name))
        elif os.path.exists(name) and not os.path.isdir(name):  # noqa: PTH110, PTH112 (never raise)
            raise UsageError(f"--output {pair!r}: {name} is a file, and html= takes a folder")
    named_once(path / INDEX if fmt == "html" else path for fmt, path in found)
    return found


def options(redact: bool | None, verbose: bool) -> RenderOptions:
    """Options that suit stdout."""
    columns = shutil.get_terminal_size().columns if sys.stdout.isatty() else None
    suited = terminal_options(sys.stdout, os.environ, columns)
    return msgspec.structs.replace(suited, verbose=verbose, redact=redact, names=local_names())


def show(audit: Audit, fmt: str, how: RenderOptions) -> None:
    """Write an audit to stdout; alone, without the pages of its rows, an HTML index links nowhere."""
    if fmt == "html":
        rows = tuple(msgspec.structs.replace(row, page="") for row in audit.applications)
        audit = msgspec.structs.replace(audit, applications=rows)
    write(render_audit(audit, fmt, how), fmt)


def save(audit: Audit, outputs: Sequence[tuple[str, Path]], how: RenderOptions, pages: Mapping[str, str]) -> None:
    """Write an audit to files, each whole or not at all; HTML into a folder, with the ``pages`` of its rows."""
    plain = msgspec.structs.replace(how, color=False, ascii_only=False, width=100)
    for fmt, path in outputs:
        if fmt != "html":
            write_file(path, render_audit(audit, fmt, plain))
            continue
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise InputError(f"{path} cannot be made: {error.strerror or error}; html= takes a folder") from None
        for row in audit.applications:
            if row.page and pages.get(row.page):
                write_file(path / row.page, pages[row.page])
        write_file(path / INDEX, render_audit(audit, fmt, plain))


def page_names(rows: Sequence[AuditRow]) -> list[str]:
    """A file name for each row's page: readable, safe on every system, the same on every run."""
    found = []
    for row in rows:
        plain = re.sub(r"[^A-Za-z0-9]+", "-", row.path).strip("-").lower()[:60] or "application"
        digest = hashlib.sha256(row.path.encode("utf-8", "surrogatepass")).hexdigest()[:10]
        found.append(f"{plain}-{digest}.html")
    return found


def with_page(row: AuditRow, page: str) -> AuditRow:
    """The row with the name of its page."""
    return msgspec.structs.replace(row, page=page) if page and not row.problem else row


def read_audit(path: Path) -> Audit:
    """An earlier audit; raises InputError."""
    try:
        if path.stat().st_size > _LARGEST:
            raise InputError(f"{path.name} is too large to be an audit")
        return audit_from_json(path.read_bytes(), path.name)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}") from None


def exit_code(rows: Sequence[Made], level: FailOn, known: Audit | None) -> int:
    """The exit code over all rows; rows that a baseline knows with the same verdicts and findings do not fail."""
    position = FAIL_ON.index(level)
    if known is None:
        return worst_exit(codes[position] for _, codes, _ in rows)
    old = {program: row for row in known.applications for program in _programs(row)}
    codes = []
    for row, each, _ in rows:
        code = each[position]
        if code == 1 and all(_knows(old.get(program), row) for program in _programs(row)):
            code = 0
        codes.append(code)
    return worst_exit(codes)


def _programs(row: AuditRow) -> list[str]:
    place = f"{row.application}/" if row.application else ""
    return [place + program for program in row.programs]


def _knows(old: AuditRow | None, new: AuditRow) -> bool:
    """True when every blocker, risk and setup step of a row was there before, on every stack."""
    if old is None:
        return False
    before = {(f.id, stack) for f in old.findings for stack in f.severity}
    return all(
        (finding.id, stack) in before
        for finding in new.findings
        if not finding.ignored
        for stack, severity in finding.severity.items()
        if severity != "note"
    )
