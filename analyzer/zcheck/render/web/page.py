"""One self-contained page from a template: inline style and script under a content policy that lets nothing else in."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from zcheck.render import view
from zcheck.render.safe import visible
from zcheck.render.web import palette

if TYPE_CHECKING:
    from jinja2 import Environment


def _asset(name: str) -> str:
    return (files("zcheck.render.web") / "templates" / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode("utf-8")).digest()).decode("ascii")


def _finish(value: object) -> object:
    """Shown strings lose control and bidi characters; what is markup already stays."""
    return visible(value) if isinstance(value, str) and not hasattr(value, "__html__") else value


def _web_link(url: str) -> bool:
    """Whether a reference may become a link."""
    return url.startswith("https://") and url.isascii() and url.isprintable() and not set(url) & set(" \"'<>\\^`{|}")


@lru_cache(maxsize=1)
def environment() -> Environment:
    """The template environment: autoescape on, undefined names are errors."""
    from jinja2 import Environment, PackageLoader, StrictUndefined

    made = Environment(
        loader=PackageLoader("zcheck.render.web", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_finish,
    )
    made.globals.update(view=view, palette=palette)
    made.tests["web_link"] = _web_link
    return made


def page(template: str, title: str, **context: Any) -> str:
    """The page of ``template`` (which extends ``base.html.j2``) with ``context``; ends in a line feed."""
    from markupsafe import Markup

    style = palette.css_variables() + _asset("style.css")
    script = _asset("page.js")
    policy = (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )
    text = (
        environment()
        .get_template(template)
        .render(title=title, style=Markup(style), script=Markup(script), policy=policy, **context)
    )
    return text.rstrip("\n") + "\n"
