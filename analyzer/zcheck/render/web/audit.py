"""HTML of an audit: the index page, its rows linking to pages of their own where these are written."""

from __future__ import annotations

from zcheck.model.audit import Audit
from zcheck.render import audit_view, view
from zcheck.render.options import RenderOptions
from zcheck.render.web import palette
from zcheck.render.web.page import page


def render(audit: Audit, options: RenderOptions) -> str:
    """The index page: a chart of verdicts, the applications, causes, releases, changes."""
    counts = audit_view.counts(audit)
    return page(
        "audit.html.j2",
        f"{audit.target}: {audit_view.totals(audit)}",
        audit=audit,
        labels=audit_view.labels(audit),
        audit_view=audit_view,
        chart=list(counts.items()),
        most=max(counts.values(), default=1),
        meanings=[(v, view.VERDICT_MEANING[v]) for v in palette.VERDICT_STATE if v in counts],
        zcheck=audit.zcheck,
        database=audit.database,
    )
