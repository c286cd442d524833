"""CSV: one row a finding and stack, so that a spreadsheet can sort and count."""

from __future__ import annotations

import csv
import io

from zcheck.model.finding import Finding
from zcheck.model.report import Applications, Report, StackReport
from zcheck.render import view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import csv_cell

COLUMNS = (
    "application",
    "stack",
    "verdict",
    "headline",
    "severity",
    "id",
    "module",
    "library",
    "functions",
    "reach",
    "confidence",
    "title",
    "message",
    "fix",
    "evidence",
    "ignored",
)


def render(product: Report | Applications, options: RenderOptions) -> str:
    """A head line and the rows; a stack without findings has one row with its verdict."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for report in view.reports(product):
        if not report.stacks:
            row = [report.target, "", "unknown", "no stack was judged"]
            writer.writerow([csv_cell(cell) for cell in row] + [""] * (len(COLUMNS) - len(row)))
        for stack in report.stacks:
            rows: list[tuple[Finding | None, bool]] = [(f, False) for f in stack.findings]
            rows += [(f, True) for f in stack.ignored]
            for finding, ignored in rows or [(None, False)]:
                writer.writerow([csv_cell(cell) for cell in _row(report, stack, finding, ignored)])
    return out.getvalue()


def _row(report: Report, stack: StackReport, finding: Finding | None, ignored: bool) -> list[str]:
    head = [report.target, stack.id, stack.verdict, stack.headline]
    if finding is None:
        return head + [""] * (len(COLUMNS) - len(head))
    return [
        *head,
        finding.severity,
        finding.id,
        finding.module or "",
        finding.library or "",
        "; ".join(finding.functions),
        finding.reach,
        finding.confidence,
        finding.title,
        finding.message,
        " / ".join(finding.fix),
        " / ".join([*finding.evidence, *([f"and {finding.evidence_left} more"] if finding.evidence_left else [])]),
        "yes" if ignored else "",
    ]
