"""CSV of an audit: one row an application and stack."""

from __future__ import annotations

import csv
import io

from zcheck.model.audit import Audit
from zcheck.render import audit_view
from zcheck.render.options import RenderOptions
from zcheck.render.safe import csv_cell

COLUMNS = (
    "path", "application", "kind", "programs", "others", "stack", "verdict", "workload", "top_cause", "cause_id",
    "first_action", "blockers", "risks", "cuda", "frameworks", "size", "files", "findings", "ignored", "problem",
)  # fmt: skip


def render(audit: Audit, options: RenderOptions) -> str:
    """A head line and the rows. ``cause_id`` is the stack's own; cause and action are those of the first stack."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(COLUMNS)
    for row in audit.applications:
        for stack in audit.stacks:
            cells = (
                row.path, row.application, row.kind, "; ".join(row.programs), "; ".join(row.others), stack.id,
                row.verdict.get(stack.id, ""), audit_view.needs(row), row.top_cause, row.causes.get(stack.id, ""),
                row.first_action, str(row.blockers.get(stack.id, 0)), str(row.risks.get(stack.id, 0)), row.cuda,
                "; ".join(row.frameworks), str(row.size), str(row.files),
                "; ".join(f"{f.id} ({f.severity[stack.id]})" for f in row.findings
                          if stack.id in f.severity and not f.ignored),
                "; ".join(f.id for f in row.findings if stack.id in f.severity and f.ignored), row.problem,
            )  # fmt: skip
            writer.writerow([csv_cell(cell) for cell in cells])
    return out.getvalue()
