"""report → text, JSON, Markdown, issue text, HTML, SARIF, CSV, CycloneDX, Mermaid, DOT; redaction.

Formats are modules named in one table and imported when used, so that a light verb pays for none of them.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import cast

from zcheck.errors import UsageError
from zcheck.model.base import Record
from zcheck.model.report import Applications, Report
from zcheck.render.difform import DIFF_FORMATS, render_diff
from zcheck.render.jsonform import from_json, schema
from zcheck.render.normal import normal
from zcheck.render.options import RenderOptions, terminal_options
from zcheck.render.redact import RedactionNames, redact, redact_product

__all__ = [
    "DIFF_FORMATS",
    "FORMATS",
    "Format",
    "RedactionNames",
    "RenderOptions",
    "from_json",
    "redact",
    "redact_product",
    "render",
    "render_diff",
    "schema",
    "terminal_options",
]


class Format(Record, frozen=True):
    """A format: the module of this package whose ``render(product, options)`` makes it, and the usual file ending.

    ``shared``: meant for other people's eyes, so names are taken out unless the user says otherwise.
    """

    module: str
    ending: str
    shared: bool = True


FORMATS: dict[str, Format] = {
    "text": Format("text", ".txt", shared=False),
    "json": Format("jsonform", ".json", shared=False),
    "markdown": Format("markdown", ".md"),
    "issue": Format("issue", ".md"),
    "html": Format("web", ".html"),
    "sarif": Format("sarif", ".sarif"),
    "csv": Format("csvform", ".csv"),
    "cyclonedx": Format("cyclonedx", ".cdx.json"),
    "mermaid": Format("mermaid", ".mmd"),
    "dot": Format("dot", ".dot"),
}


def render(product: Report | Applications, fmt: str, options: RenderOptions | None = None) -> str:
    """The report in format ``fmt``, ending in a line feed; raises UsageError for a format that does not exist."""
    options = options or RenderOptions()
    if fmt not in FORMATS:
        raise UsageError(f"format {fmt!r} does not exist; choose one of {', '.join(FORMATS)}")
    form = FORMATS[fmt]
    product = normal(product)
    if form.shared if options.redact is None else options.redact:
        product = redact_product(product, options.names)
    module = import_module(f"zcheck.render.{form.module}")
    return cast("Callable[[Report | Applications, RenderOptions], str]", module.render)(product, options)
