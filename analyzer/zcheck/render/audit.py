"""An audit → text, JSON, CSV, Markdown, and an HTML index page."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, cast

import msgspec

from zcheck.errors import InputError, UsageError
from zcheck.model.audit import Audit, AuditRow
from zcheck.model.report import SCHEMA
from zcheck.render.normal import whole_strings
from zcheck.render.options import RenderOptions
from zcheck.render.redact import redact_product
from zcheck.render.safe import escape_json

# Format: module, and whether names of people and machines are taken out as usual.
AUDIT_FORMATS: dict[str, tuple[str, bool]] = {
    "text": ("audit_text", False),
    "json": ("", False),
    "csv": ("audit_csv", True),
    "markdown": ("audit_markdown", True),
    "html": ("web.audit", True),
}


def render_audit(audit: Audit, fmt: str, options: RenderOptions | None = None) -> Iterator[str]:
    """The audit in a format, in pieces (JSON row by row: the text of very many rows need not fit into memory); the last
    ends in a line feed. Raises UsageError for a format that does not exist."""
    if fmt not in AUDIT_FORMATS:
        raise UsageError(f"format {fmt!r} does not exist for an audit; choose one of {', '.join(AUDIT_FORMATS)}")
    return _parts(audit, fmt, options or RenderOptions())


def _parts(audit: Audit, fmt: str, options: RenderOptions) -> Iterator[str]:
    name, shared = AUDIT_FORMATS[fmt]
    frame = whole_strings(msgspec.structs.replace(audit, applications=()))
    audit = msgspec.structs.replace(frame, applications=tuple(whole_strings(row) for row in audit.applications))
    if shared if options.redact is None else options.redact:
        audit = redact_product(audit, options.names)
    if not name:
        yield from _json(audit)
        return
    module = import_module(f"zcheck.render.{name}")
    yield cast("Callable[[Audit, RenderOptions], str]", module.render)(audit, options)


def _json(audit: Audit) -> Iterator[str]:
    before, empty, after = _formatted(msgspec.structs.replace(audit, applications=())).partition('"applications": []')
    if not audit.applications:
        yield before + empty + after + "\n"
        return
    yield before + '"applications": ['
    separator = "\n    "
    for row in audit.applications:
        # A line feed stands between values only; in strings it is escaped.
        yield separator + _formatted(row).replace("\n", "\n    ")
        separator = ",\n    "
    yield "\n  ]" + after + "\n"


def _formatted(value: Audit | AuditRow) -> str:
    packed = msgspec.json.format(msgspec.json.encode(value, order="deterministic"), indent=2)
    return escape_json(packed.decode("utf-8"))


def audit_from_json(text: str | bytes, name: str = "audit") -> Audit:
    """The audit that ``render_audit`` wrote as JSON; raises InputError naming ``name`` and the cause."""
    try:
        head: Any = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"{name}: this is no JSON ({error})") from None
    if not isinstance(head, dict) or "schema" not in head:
        raise InputError(f"{name}: this is no zcheck audit; it has no key 'schema'")
    if head["schema"] != SCHEMA:
        raise InputError(f"{name}: its schema is {head['schema']!r}; this zcheck reads schema {SCHEMA}")
    try:
        return msgspec.convert(head, Audit, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        raise InputError(f"{name}: not an audit that this zcheck can read: {error}") from None
