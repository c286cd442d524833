"""JSON: the report itself, byte-identical on repeat; its schema; and the way back."""

from __future__ import annotations

from typing import Any

import msgspec

from zcheck import __version__
from zcheck.errors import InputError
from zcheck.model.audit import Audit
from zcheck.model.report import SCHEMA, Applications, Report
from zcheck.render.options import RenderOptions
from zcheck.render.safe import escape_json


def render(product: Report | Applications, options: RenderOptions) -> str:
    """The keys of design section 9, indented by two; invisible and bidi characters as escapes."""
    packed = msgspec.json.format(msgspec.json.encode(product, order="deterministic"), indent=2)
    return escape_json(packed.decode("utf-8")) + "\n"


def from_json(text: str | bytes, name: str = "report") -> Report | Applications:
    """The report that ``render`` wrote; raises InputError naming ``name`` and the cause when it is none."""
    try:
        head = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InputError(f"{name}: this is no JSON ({error})") from None
    if not isinstance(head, dict) or "schema" not in head:
        raise InputError(f"{name}: this is no zcheck report; it has no key 'schema'")
    if head["schema"] != SCHEMA:
        raise InputError(f"{name}: its schema is {head['schema']!r}; this zcheck reads schema {SCHEMA}")
    kind: Any = Applications if "applications" in head else Report
    try:
        product: Report | Applications = msgspec.convert(head, kind, strict=True)
    except (msgspec.ValidationError, RecursionError) as error:
        newer = (
            f"; it was written by zcheck {head.get('zcheck')}, this is {__version__}"
            if head.get("zcheck") != __version__
            else ""
        )
        raise InputError(f"{name}: not a report this zcheck can read: {error}{newer}") from None
    return product


def schema() -> dict[str, Any]:
    """The JSON Schema (2020-12) of a report, made from the types themselves.

    Additional keys are allowed: within one schema number keys are only ever added.
    """
    kinds, definitions = msgspec.json.schema_components(
        [Report, Applications, Audit], ref_template="#/$defs/{name}", schema_hook=_anything
    )
    document: dict[str, Any] = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "zcheck report",
        "description": f"Report of zcheck {__version__}: on one application, on several (applications), or an audit",
        "version": SCHEMA,
        "anyOf": list(kinds),
        "$defs": definitions,
    }
    _open(document)
    for name in ("Report", "Applications", "Audit"):
        definitions[name]["properties"]["schema"] = {"const": SCHEMA}
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(document))
    return plain


def _anything(kind: type) -> dict[str, Any]:
    """Values of the host block are free."""
    if kind is object:
        return {"description": "any value"}
    raise NotImplementedError


def _open(node: Any) -> None:
    if isinstance(node, dict):
        if node.get("additionalProperties") is False:
            del node["additionalProperties"]
        for item in node.values():
            _open(item)
    elif isinstance(node, list):
        for item in node:
            _open(item)
