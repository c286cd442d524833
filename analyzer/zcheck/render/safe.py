"""Make text from strangers' files harmless in each format: file names, version strings and symbols are hostile input.

Every function takes any ``str`` (lone surrogates included) and returns text for one place of one format. What is not
printable is shown as a ``\\u202e`` style escape rather than dropped, so that nobody is misled and nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import escape
from typing import Any, TypeVar, cast
from urllib.parse import quote

import msgspec

# C0, DEL, C1; soft hyphen; Arabic letter mark; zero-width and directional marks; line and paragraph separators;
# bidi embeddings, overrides and isolates; invisible operators; BOM; interlinear marks; surrogates; tag characters.
_UNSEEN = re.compile(
    "[\x00-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff\U000e0000-\U000e007f]"
)
# JSON has escapes of its own for C0, and line feeds between values.
_UNSEEN_IN_JSON = re.compile(_UNSEEN.pattern.replace("\x00-\x1f", ""))
_ASCII_FORMS = str.maketrans(
    {
        "…": "...",
        "·": "-",
        "→": "->",
        "─": "-",
        "│": "|",
        "└": "`",
        "├": "|",
        "–": "-",
        "—": "-",
        "’": "'",
        "≥": ">=",
        "×": "x",
    }
)
_MARKDOWN = str.maketrans({char: "\\" + char for char in "\\`*_{}[]()#+!|~$"} | {"\0": "<!-- -->"})
_MENTION = re.compile(r"([@#])(?=\w)")
_FORMULA = ("=", "+", "-", "@", "＝", "＋", "－", "＠")
_LINK = re.compile(r"([\[\]])")
_MERMAID = re.compile(r"[^A-Za-z0-9 ._:/+-]")
T = TypeVar("T")


def _escape(match: re.Match[str]) -> str:
    code = ord(match.group())
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def visible(text: str) -> str:
    """One line without control, bidi or invisible characters; these appear as escapes."""
    return _UNSEEN.sub(_escape, text)


def ascii_text(text: str) -> str:
    """``visible`` in ASCII only, for consoles with an old code page."""
    return visible(text).translate(_ASCII_FORMS).encode("ascii", "backslashreplace").decode("ascii")


def markdown_text(text: str) -> str:
    """Prose inside GitHub Markdown: no markup, no HTML, no table break, nobody is mentioned, no issue is linked."""
    escaped = escape(visible(text), quote=False)
    # GitHub looks for @name and #1 after rendering, so an escape does not stop it; an empty comment between does.
    held = _MENTION.sub("\\1\0", escaped)
    return held.translate(_MARKDOWN)


def markdown_code(text: str) -> str:
    """A code span inside GitHub Markdown, also inside a table."""
    shown = visible(text)
    if shown and not re.search(r"[`|]", shown) and shown == shown.strip():
        return f"`{shown}`"
    return f"<code>{re.sub(r'[^A-Za-z0-9 ./:-]', lambda m: f'&#{ord(m.group())};', shown)}</code>"


def csv_cell(text: str) -> str:
    """A CSV value that a spreadsheet takes as text, never as a formula."""
    shown = visible(text)
    return "'" + shown if shown.lstrip().startswith(_FORMULA) else shown


def sarif_text(text: str) -> str:
    """A SARIF plain text message (specification 2.1.0, 3.11.6: brackets would make a link)."""
    return _LINK.sub(r"\\\1", visible(text))


def uri_path(path: str) -> str:
    """A relative or absolute file path as a URI reference, percent-encoded UTF-8."""
    shown = visible_path(path)
    if re.match(r"[A-Za-z]:/", shown):
        return "file:///" + shown[:2] + quote(shown[2:], safe="/._-~")
    if shown.startswith("//"):
        return "file:" + quote(shown, safe="/._-~")
    return quote(shown, safe="/._-~")


def visible_path(path: str) -> str:
    """``visible`` with forward slashes between the components."""
    return visible(path.replace("\\", "/"))


def dot_string(text: str) -> str:
    """A quoted string of the DOT language."""
    return '"' + visible(text).replace("\\", "\\\\").replace('"', '\\"') + '"'


def mermaid_text(text: str) -> str:
    """A quoted label of a Mermaid graph; anything but plain characters as an entity code."""
    return '"' + _MERMAID.sub(lambda m: f"#{ord(m.group())};", visible(text)) + '"'


def escape_json(text: str) -> str:
    """The same JSON document with invisible and bidi characters as ``\\u`` escapes (they occur in strings only)."""

    def unit(match: re.Match[str]) -> str:
        code = ord(match.group())
        if code < 0x10000:
            return f"\\u{code:04x}"
        code -= 0x10000
        return f"\\u{0xD800 + (code >> 10):04x}\\u{0xDC00 + (code & 0x3FF):04x}"

    return _UNSEEN_IN_JSON.sub(unit, text)


def map_strings(value: T, change: Callable[[str], str]) -> T:
    """The same product with ``change`` applied to every string in it, nested dictionaries (keys too) included.

    Parts that no change touches are the very same objects.
    """
    known: dict[str, str] = {}

    def once(text: str) -> str:
        told = known.get(text)
        if told is None:
            known[text] = told = change(text)
        return text if told == text else told

    return cast(T, _walk(value, once))


def _walk(value: Any, change: Callable[[str], str]) -> Any:
    if isinstance(value, str):
        return change(value)
    if isinstance(value, msgspec.Struct):
        changes = {}
        for name in value.__struct_fields__:
            old = getattr(value, name)
            new = _walk(old, change)
            if new is not old:
                changes[name] = new
        return msgspec.structs.replace(value, **changes) if changes else value
    if isinstance(value, (tuple, list)):
        items = [_walk(item, change) for item in value]
        if all(new is old for new, old in zip(items, value, strict=True)):
            return value
        return type(value)(items)
    if isinstance(value, dict):
        pairs = [(_walk(key, change), _walk(item, change)) for key, item in value.items()]
        same = all(key is old and item is was for (key, item), (old, was) in zip(pairs, value.items(), strict=True))
        return value if same else dict(pairs)
    return value
