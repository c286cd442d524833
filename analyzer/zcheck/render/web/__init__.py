"""HTML: one self-contained page for a report, and an index page for many applications."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zcheck.model.base import Record, Skipped
from zcheck.model.report import VERDICTS, Applications, Report, Verdict
from zcheck.render import graphview, view
from zcheck.render.options import RenderOptions

GRAPH_LIMIT = 2_500
"""modules drawn; beyond it the picture would help nobody, the list stays"""
LIST_LIMIT = 4_000
"""dependencies and functions listed"""


class IndexRow(Record, frozen=True):
    """One application on an index page; ``verdicts`` by stack label, ``href`` where its own report stands (or empty).

    ``extra``: more columns as (title, value), the same titles in every row of a page.
    """

    name: str
    verdicts: tuple[tuple[str, Verdict], ...]
    workload: str = ""
    cause: str = ""
    action: str = ""
    href: str = ""
    extra: tuple[tuple[str, str], ...] = ()


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The page of a report; for a folder of programs the index with every report below it."""
    from zcheck.render.web.page import page

    if isinstance(product, Report):
        title = f"{product.target}: {', '.join(view.VERDICT_WORDS[s.verdict] for s in product.stacks) or 'UNKNOWN'}"
        return page("report.html.j2", title, report=product, part=_part(product, "a1"), **_about(product))
    parts = [(report, _part(report, f"a{number}")) for number, report in enumerate(product.applications, 1)]
    rows = [_row(report, f"#{part['ident']}") for report, part in parts]
    return index_page(f"{product.target}: {len(rows)} programs", rows, _about(product), product.skipped, parts)


def index_page(
    title: str,
    rows: Sequence[IndexRow],
    about: dict[str, str],
    skipped: Sequence[Skipped] = (),
    parts: Sequence[tuple[Report, dict[str, Any]]] = (),
) -> str:
    """An index: a chart of verdicts, a table that can be filtered and sorted, and the reports given in ``parts``.

    ``about`` has the keys ``zcheck`` and ``database``. Links to other pages must be relative.
    """
    from zcheck.render.web.page import page

    worst = [_worst([verdict for _, verdict in row.verdicts]) for row in rows]
    chart = [(verdict, worst.count(verdict)) for verdict in VERDICTS if verdict in worst]
    extra = [name for name, _ in rows[0].extra] if rows else []
    return page(
        "index.html.j2",
        title,
        rows=rows,
        chart=chart,
        most=max((n for _, n in chart), default=1),
        extra=extra,
        skipped=skipped,
        parts_of=parts,
        **about,
    )


def _worst(verdicts: Sequence[Verdict]) -> Verdict:
    return next((verdict for verdict in VERDICTS if verdict in verdicts), "unknown")


def _about(product: Report | Applications) -> dict[str, str]:
    return {"zcheck": product.zcheck, "database": product.database}


def _row(report: Report, href: str) -> IndexRow:
    worst = view.worst(report.stacks)
    stack = next((stack for stack in report.stacks if stack.verdict == worst), None)
    needs = view.workload_words(stack).get("required", []) if stack else []
    action = stack.actions[0] if stack and stack.actions else ""
    cause = stack.findings[0].title if stack and stack.findings else ""
    return IndexRow(
        report.target,
        tuple((view.stack_label(s), s.verdict) for s in report.stacks),
        ", ".join(needs),
        cause,
        action,
        href,
    )


def _part(report: Report, ident: str) -> dict[str, Any]:
    """What the template needs beside the report itself."""
    from zcheck.render.web import svg

    seen = graphview.build(report, system=False)
    stacks = tuple(stack.id for stack in report.stacks)
    families = view.families_of(report.stacks[0]) if report.stacks else []
    reasons: dict[str, dict[str, None]] = {}
    for stack in report.stacks:
        for reason in stack.workload_reasons:
            reasons.setdefault(reason.family, {}).update(dict.fromkeys(reason.reasons))
    roles = {node.role(stack) for node in seen.nodes for stack in stacks or (None,)}
    return {
        "ident": ident,
        "labels": view.short_labels(report),
        "findings": view.merged(report),
        "ignored": view.merged(report, ignored=True),
        "matrix": view.rule_rows(report),
        "families": [f for f in families if any(s.workload.get(f) != "not seen" for s in report.stacks)],
        "unseen": [f for f in families if all(s.workload.get(f) == "not seen" for s in report.stacks)],
        "reasons": {family: list(names) for family, names in reasons.items()},
        "graph": seen,
        "svg": svg.draw(seen, stacks, ident) if seen.edges and len(seen.nodes) <= GRAPH_LIMIT else None,
        "roles": [(role, view.ROLE_MEANING[role]) for role in view.ROLE_MEANING if role in roles],
        "kinds": graphview.KIND_WORDS,
        "switch": any(len(set(node.roles.values())) > 1 for node in seen.nodes),
        "marked": any(node.severity in ("blocker", "risk") for node in seen.nodes),
        "edges": seen.edges[:LIST_LIMIT],
        "edges_left": max(0, len(seen.edges) - LIST_LIMIT),
        "functions": report.functions[:LIST_LIMIT],
        "functions_left": max(0, len(report.functions) - LIST_LIMIT),
        "meanings": view.meanings(report.stacks),
    }
