"""Restart at a seam: evidence lines, evidence JSON, or a saved report; and the evidence written so."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from zcheck.cli.entry import Analysis
from zcheck.cli.files import read_file
from zcheck.errors import DataError, InputError, UsageError
from zcheck.match.loader import parse_given
from zcheck.model.base import Record
from zcheck.model.evidence import Evidence, line
from zcheck.model.report import SCHEMA, Applications, Report

EVIDENCE_FORMATS = ("text", "json")


class EntryEvidence(Record, frozen=True):
    """The evidence on one of several programs; ``entry`` is its path in the folder."""

    entry: str
    evidence: Evidence


def check_evidence(fmt: str, outputs: Sequence[str]) -> None:
    """Raises UsageError for formats that evidence is not written in; ``outputs``: formats of files."""
    if fmt not in EVIDENCE_FORMATS:
        raise UsageError(f"--evidence is printed as lines (--format text) or as JSON (--format json), not as {fmt}")
    if outputs:
        raise UsageError("--evidence goes to standard output; --output writes reports: leave one of them out")


def evidence_text(analyses: Sequence[Analysis], fmt: str, redact: bool) -> str:
    """The evidence as lines or as JSON; ``read_saved`` understands both."""
    found = [EntryEvidence(analysis.entry, analysis.evidence) for analysis in analyses]
    if redact:
        from zcheck.cli.names import local_names
        from zcheck.render import redact_product

        found = [redact_product(each, local_names()) for each in found]
    if fmt == "json":
        from zcheck.render.safe import escape_json

        encoded = msgspec.json.encode(found[0].evidence if len(found) == 1 else found)
        return escape_json(msgspec.json.format(encoded, indent=2).decode()) + "\n"
    blocks = ["".join(f"{line(item)}\n" for item in each.evidence.items) for each in found]
    if len(found) == 1:
        return blocks[0]
    return "\n".join(f"# {each.entry}\n{block}" for each, block in zip(found, blocks, strict=True))


def read_saved(path: Path) -> tuple[list[Analysis], str]:
    """Analyses (without graph and facts) and the target's name from a saved file; raises InputError and DataError.

    Understood are the lines that ``--evidence`` prints, the JSON of an Evidence product, and JSON reports, whose
    evidence is judged anew.
    """
    try:
        text = read_file(path).decode("utf-8-sig")
    except UnicodeDecodeError:
        raise InputError(f"{path.name} is neither evidence nor a report: it is not UTF-8 text") from None
    if text.lstrip().startswith(("{", "[")):
        return _json(text, path)
    analyses = []
    for entry, block in _blocks(text, path.name):
        evidence, _ = parse_given(block, path.name)
        if not evidence.items:
            raise DataError(f"{path.name} holds no evidence line")
        analyses.append(Analysis(entry=entry or evidence.target, evidence=evidence))
    return analyses, path.name


class _Head(msgspec.Struct):
    """What a report of any version begins with."""

    schema: int
    zcheck: str = "an unknown version"


def _json(text: str, path: Path) -> tuple[list[Analysis], str]:
    failed = _other_version(text)
    kinds: tuple[Any, ...] = (Evidence, Report, Applications, tuple[EntryEvidence, ...])
    for kind in kinds:
        try:
            found: Evidence | Report | Applications | tuple[EntryEvidence, ...] = msgspec.json.decode(text, type=kind)
        except (msgspec.DecodeError, RecursionError) as error:
            failed = failed or str(error)
            continue
        if isinstance(found, Evidence):
            return [Analysis(entry=found.target, evidence=found)], found.target
        if isinstance(found, tuple):
            if not found:
                raise DataError(f"{path.name} holds no evidence")
            return [Analysis(entry=each.entry, evidence=each.evidence) for each in found], path.name
        reports = found.applications if isinstance(found, Applications) else (found,)
        return [_of_report(report, path.name) for report in reports], found.target
    raise DataError(f"{path.name} is neither evidence nor a report of this version: {failed}")


def _other_version(text: str) -> str:
    """Said of a report whose schema is another one; empty for one of this schema, and for what is no report."""
    try:
        head = msgspec.json.decode(text, type=_Head)
    except (msgspec.DecodeError, RecursionError):
        return ""
    if head.schema == SCHEMA:
        return ""
    return f"it has schema {head.schema}, written by zcheck {head.zcheck}, and this one reads schema {SCHEMA}"


def _of_report(report: Report, name: str) -> Analysis:
    evidence, _ = parse_given("\n".join(report.evidence), name)
    target = report.entries[0] if report.entries else evidence.target
    return Analysis(entry=report.target, evidence=Evidence(target=target, items=evidence.items), skipped=report.skipped)


def _blocks(text: str, name: str) -> list[tuple[str, str]]:
    """``# entry`` heads, as ``--evidence`` prints them for several entries, part the lines."""
    blocks: list[tuple[str, list[str]]] = [("", [])]
    for row in text.splitlines():
        if row.startswith("# "):
            blocks.append((row[2:].strip(), []))
        else:
            blocks[-1][1].append(row)
    found = [(entry, "\n".join(rows)) for entry, rows in blocks if any(row.strip() for row in rows)]
    if not found:
        raise DataError(f"{name} holds no evidence")
    return found
