"""An earlier report as a baseline: what it knows is still told, and does not fail."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from zcheck.cli.config import Config
from zcheck.errors import InputError
from zcheck.model.report import Applications, Report, StackReport

Known = set[tuple[str, str, str, str]]
"""(target, stack id, rule id, module) of an earlier report's findings"""


def read_baseline(path: Path | None, config: Config) -> Known | None:
    """What the file of ``--baseline`` or of the settings knows; None without one. Raises InputError."""
    from zcheck.render import from_json

    if path is None:
        if not config.baseline:
            return None
        path = Path(config.baseline)
    try:
        product = from_json(path.read_bytes(), path.name)
    except OSError as error:
        raise InputError(f"{path.name} cannot be read: {error.strerror or error}") from None
    reports: Iterable[Report] = product.applications if isinstance(product, Applications) else (product,)
    return {
        (report.target, stack.id, finding.id, finding.module or "")
        for report in reports
        for stack in report.stacks
        for finding in stack.findings
    }


def fresh(report: Report, known: Known | None) -> list[StackReport]:
    """The stacks of a report as far as they decide the exit code: without the findings that the baseline knows.

    A stack of whose findings (notes left out) none is new counts as one that is likely to work.
    """
    if known is None:
        return list(report.stacks)
    found = []
    for stack in report.stacks:
        new = [f for f in stack.findings if (report.target, stack.id, f.id, f.module or "") not in known]
        if len(new) == len(stack.findings):
            found.append(stack)
            continue
        deciding = any(finding.severity != "note" for finding in new)
        verdict = stack.verdict if deciding or stack.verdict in ("unknown", "no-cuda", "verified") else "likely"
        found.append(msgspec.structs.replace(stack, findings=tuple(new), verdict=verdict))
    return found
