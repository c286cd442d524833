"""Names, versions and strings that a stranger's file chose do no harm in any format."""

from __future__ import annotations

import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest
import sample_reports
from hypothesis import given
from hypothesis import strategies as st

from zcheck.render import FORMATS, RenderOptions, render, safe

# What must never reach a reader as it is: control characters but the line feed, bidi controls, zero-width characters.
BAD = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ud800-\udfff]")


@pytest.fixture(scope="module")
def outputs() -> dict[str, str]:
    report = sample_reports.hostile()
    return {fmt: render(report, fmt, RenderOptions(width=120, tree=True, verbose=True)) for fmt in FORMATS}


@pytest.mark.parametrize("fmt", sorted(FORMATS))
def test_no_control_or_bidi_character_comes_through(fmt: str, outputs: dict[str, str]) -> None:
    found = BAD.search(outputs[fmt])
    assert found is None, (fmt, outputs[fmt][max(0, found.start() - 40) : found.end() + 20])


def test_ascii_text_is_ascii() -> None:
    assert render(sample_reports.hostile(), "text", RenderOptions(ascii_only=True, tree=True)).isascii()


def test_rich_markup_is_not_obeyed(outputs: dict[str, str]) -> None:
    assert "[bold]rich[/bold]" in outputs["text"]


class Tags(HTMLParser):
    """Counts elements and collects attributes; what is inside script and style is text."""

    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs
        if tag not in ("meta", "link", "input", "br"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.names.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_page_has_only_our_elements(outputs: dict[str, str]) -> None:
    page = Tags()
    page.feed(outputs["html"])
    assert page.open == []
    assert page.names.count("script") == page.names.count("style") == 1
    assert not {"img", "iframe", "object", "embed", "base", "onload"} & set(page.names)
    assert not [name for name, _ in page.attributes if name.startswith("on") or name == "style"]
    links = [value for name, value in page.attributes if name in ("href", "src", "action", "xlink:href")]
    assert all(link is not None and re.match(r"#|data:,$|https://", link) for link in links), links


def test_markdown_has_no_html_but_ours(outputs: dict[str, str]) -> None:
    for fmt in ("markdown", "issue"):
        text = re.sub(r"`[^`\n]*`", "", outputs[fmt])
        tags = set(re.findall(r"</?([a-zA-Z]+)", text))
        assert tags <= {"code", "details", "summary", "br"}, tags
        assert text.count("<details>") == text.count("</details>")
        assert not re.search(r"(?<![\\!])@octocat", text), "a name would be mentioned"
        assert "](javascript" not in text
        assert outputs[fmt].count("```mermaid") == len(re.findall(r"^```$", outputs[fmt], re.M))


def test_markdown_tables_keep_their_columns(outputs: dict[str, str]) -> None:
    width = 0
    for line in outputs["markdown"].splitlines():
        if line.startswith("|"):
            bars = len(re.findall(r"(?<!\\)\|", line))
            width = width or bars
            assert bars == width, line
        else:
            width = 0


def test_csv_cells_are_no_formulas(outputs: dict[str, str]) -> None:
    rows = list(csv.reader(io.StringIO(outputs["csv"])))
    assert len({len(row) for row in rows}) == 1
    assert not [cell for row in rows for cell in row if cell.lstrip()[:1] in ("=", "+", "-", "@")]
    assert any("'=cmd|" in cell for row in rows for cell in row), "the value itself must stay readable"


def test_dot_strings_hold(outputs: dict[str, str]) -> None:
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', '""', outputs["dot"])
    assert '"' not in bare.replace('""', "")
    assert "evil" not in bare and bare.count("{") == bare.count("}") == 1


def test_mermaid_labels_hold(outputs: dict[str, str]) -> None:
    for line in outputs["mermaid"].splitlines():
        assert re.fullmatch(
            r"graph LR|  %% [\w ./:+#;-]*|  n\d+\[\"[\w ./:+#;-]*\"\]:::[a-z_]+|"
            r"  n\d+ (-->|-\.->) n\d+|  classDef [a-z_]+ [\w:,#-]+",
            line,
            re.ASCII,
        ), line


def test_sarif_and_json_are_valid_and_complete(outputs: dict[str, str]) -> None:
    log = json.loads(outputs["sarif"])
    assert len(log["runs"][0]["results"]) == len(sample_reports.HOSTILE)
    messages = [result["message"]["text"] for result in log["runs"][0]["results"]]
    assert not [text for text in messages if re.search(r"(?<!\\)\]\(", text)]
    # JSON keeps the very strings, as escapes.
    assert "\u202eexe.fdp" in json.loads(outputs["json"])["frameworks"]


@given(st.text(max_size=40))
def test_any_text_is_safe_everywhere(text: str) -> None:
    assert not BAD.search(safe.visible(text)) and "\n" not in safe.visible(text)
    assert safe.ascii_text(text).isascii()
    assert safe.csv_cell(text).lstrip()[:1] not in ("=", "+", "-", "@")
    assert "<" not in safe.markdown_text(text).replace("<!-- -->", "")
    quoted = safe.dot_string(text)
    assert re.fullmatch(r'"(?:[^"\\]|\\.)*"', quoted)
    assert re.fullmatch(r"[\x21-\x7e]*", safe.uri_path(text))
    span = safe.markdown_code(text)
    assert re.fullmatch(r"`[^`|\n]+`|<code>[A-Za-z0-9 ./:&#;-]*</code>", span)


@given(st.text(max_size=40))
def test_escaped_json_is_the_same_document(text: str) -> None:
    packed = json.dumps({"k": text}, ensure_ascii=False)
    escaped = safe.escape_json(packed)
    assert json.loads(escaped) == {"k": text} and not BAD.search(escaped)
