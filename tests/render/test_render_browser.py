"""The pages in a real browser, and what can be said of them without one."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import devtools
import pytest
import sample_reports

from zcheck.render import RenderOptions, render
from zcheck.render.web import IndexRow, graphview, index_page, palette, svg

ROOT = Path(__file__).resolve().parents[2]
PAGES = {**sample_reports.SAMPLES, "hostile": sample_reports.hostile, "big": sample_reports.big}


def luminance(color: str) -> float:
    """Relative luminance as WCAG 2 defines it, of ``#rrggbb``."""
    parts = [int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("colors", [palette.LIGHT, palette.DARK], ids=["light", "dark"])
@pytest.mark.parametrize(("front", "back", "least"), palette.PAIRS)
def test_palette_has_contrast(colors: dict[str, str], front: str, back: str, least: float) -> None:
    assert contrast(colors[front], colors[back]) >= least


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_big_graph_is_laid_out_beforehand_and_small() -> None:
    """2,000 modules: one element group a module, few paths, nothing for the browser to compute, boxes never overlap."""
    seen = graphview.build(sample_reports.big(2_000))
    picture = svg.draw(seen, (sample_reports.V6,), "x")
    assert picture.count("<g ") == len(seen.nodes) == 2_000
    assert picture.count("<path") <= 4 and picture.count("M") >= len(seen.edges)
    assert len(picture) < 400 * (len(seen.nodes) + len(seen.edges))
    boxes, width, height = svg.layout(seen)
    taken = {(box.x // 2, box.y // 2) for box in boxes.values()}
    assert len(taken) == len(boxes)
    spots = sorted((box.x, box.y) for box in boxes.values())
    for (x1, y1), (x2, y2) in itertools.pairwise(spots):
        assert x1 != x2 or y2 - y1 >= svg.HEIGHT
    columns = sorted({box.x for box in boxes.values()})
    assert all(b - a >= svg.WIDTH for a, b in itertools.pairwise(columns))
    assert (
        max(box.x for box in boxes.values()) + svg.WIDTH <= width
        and max(box.y for box in boxes.values()) + svg.HEIGHT <= height
    )
    layers = {node.name: node.depth for node in seen.nodes}
    assert all(boxes[e.source].x < boxes[e.target].x for e in seen.edges if layers[e.source] < layers[e.target])


def test_graph_says_in_words_what_it_shows() -> None:
    page = render(sample_reports.blocked_conv(), "html")
    for edge in sample_reports.blocked_conv().edges:
        if edge.target != "kernel32.dll":
            row = rf'<th scope="row">{re.escape(edge.source)}</th><td>{re.escape(edge.target)}</td>'
            assert re.search(row, page), edge
    assert 'role="img"' in page and "7 dependencies" in page


def test_index_page_links_to_other_pages() -> None:
    """What an audit needs: rows that link to files beside the page, columns of its own."""
    rows = [
        IndexRow(
            "a.exe",
            (("v6", "blocked"), ("v7", "likely")),
            "gemm",
            "no MIOpen",
            "wait",
            "reports/a.html",
            (("Bytes", "12"),),
        ),
        IndexRow("b.exe", (("v6", "no-cuda"), ("v7", "no-cuda")), extra=(("Bytes", "7"),)),
    ]
    page = index_page("2 programs", rows, {"zcheck": "0.1.0", "database": "2026-11-30"})
    assert 'href="reports/a.html"' in page and '<th scope="col">Bytes</th>' in page
    assert "Verdicts: 1 blocked, 1 no cuda" in page


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[devtools.Page]:
    with devtools.browser(tmp_path_factory.mktemp("profile")) as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    made = {}
    for name, make in PAGES.items():
        made[name] = folder / f"{name}.html"
        made[name].write_text(render(make(), "html", RenderOptions()), encoding="utf-8")
    return made


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", sorted(PAGES))
def test_page_is_quiet_and_fits(
    page: Any, files: dict[str, Path], name: str, width: int, scheme: str, tmp_path: Path
) -> None:
    page.open(files[name], width, 900, scheme)
    assert page.complaints() == []
    assert page.requests() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "it must not scroll sideways"
    colors = palette.DARK if scheme == "dark" else palette.LIGHT
    shown = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert shown == f"rgb({', '.join(str(int(colors['bg'][i : i + 2], 16)) for i in (1, 3, 5))})"
    page.screenshot(tmp_path / "page.png", full=False)
    assert (tmp_path / "page.png").stat().st_size > 1_000


def drawn(page: devtools.Page) -> list[tuple[str, str]]:
    """(color, ground) of every text of the page: the nearest ground behind it, as the browser computed them."""
    pairs = page.evaluate(
        """(() => {
          const seen = new Set();
          for (const node of document.querySelectorAll("body *:not(script):not(svg *)")) {
            if (![...node.childNodes].some(c => c.nodeType === 3 && c.textContent.trim())) continue;
            const clear = n => getComputedStyle(n).backgroundColor === "rgba(0, 0, 0, 0)";
            let ground = node;
            while (ground && clear(ground)) ground = ground.parentElement;
            if (ground) seen.add(getComputedStyle(node).color + "|" + getComputedStyle(ground).backgroundColor);
          }
          return [...seen];
        })()"""
    )
    found = []
    for pair in pairs:
        front, back = ("#" + "".join(f"{int(n):02x}" for n in re.findall(r"\d+", part)[:3]) for part in pair.split("|"))
        found.append((front, back))
    return found


def assert_contrast(page: devtools.Page) -> None:
    pairs = drawn(page)
    assert len(pairs) > 5
    assert [pair for pair in pairs if contrast(*pair) < 4.5] == []


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_as_drawn(page: Any, files: dict[str, Path], scheme: str) -> None:
    for name in ("blocked_conv", "applications"):
        page.open(files[name], 1280, 900, scheme)
        assert_contrast(page)


SHOWN = """[...document.querySelectorAll('#a1-findings [data-row]')].filter(n => !n.hidden)
    .map(n => n.querySelector('summary code').textContent)"""


@pytest.mark.browser
def test_findings_are_filtered_by_keyboard(page: Any, files: dict[str, Path]) -> None:
    page.open(files["blocked_conv"])
    everything = ["STACK-HIP-PATH", "DNN-CONV-NO-MIOPEN", "BLAS-PARTIAL"]
    assert page.evaluate(SHOWN) == everything
    page.key("/", "/")
    assert page.evaluate("document.activeElement.type") == "search"
    page.type("miopen")
    assert page.evaluate(SHOWN) == ["DNN-CONV-NO-MIOPEN"]
    assert page.evaluate("document.querySelector('output').textContent") == "1 of 3 shown"
    page.key("Escape")
    assert page.evaluate(SHOWN) == everything
    page.key("Tab")  # the first severity
    assert page.evaluate("document.activeElement.value") == "setup"
    page.key(" ", " ")
    assert page.evaluate(SHOWN) == everything[1:]
    assert page.complaints() == []


@pytest.fixture(scope="module")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The index that an audit of the samples writes, with its pages beside it."""
    site = tmp_path_factory.mktemp("audit") / "site"
    command = [sys.executable, "-m", "zcheck", "audit", str(ROOT / "samples"), "-j", "1", "-o", f"html={site}"]
    subprocess.run([*command, "--no-cache"], check=False, capture_output=True, timeout=240)
    return site / "index.html"


ROWS = "[...document.querySelectorAll('#rows [data-row]')].filter(n => !n.hidden).map(n => n.cells[0].textContent)"


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390])
def test_audit_index_is_quiet_fits_and_has_contrast(page: Any, audited: Path, width: int, scheme: str) -> None:
    page.open(audited, width, 900, scheme)
    assert page.complaints() == [] and page.requests() == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width, "it must not scroll sideways"
    assert len(page.evaluate(ROWS)) >= 10
    assert_contrast(page)


@pytest.mark.browser
def test_audit_index_is_filtered_and_sorted_by_keyboard_and_leads_to_each_report(page: Any, audited: Path) -> None:
    page.open(audited)
    everything = page.evaluate(ROWS)
    page.key("/", "/")
    page.type("gemm.exe")
    assert page.evaluate(ROWS) == ["gemm.exe"]
    page.key("Escape")
    assert page.evaluate(ROWS) == everything
    page.evaluate("document.querySelector('#rows thead button').focus()")
    page.key("Enter", "\r")
    assert page.evaluate(ROWS) == sorted(everything)
    page.key("Enter", "\r")
    assert page.evaluate(ROWS) == sorted(everything, reverse=True)
    links = page.evaluate("[...document.querySelectorAll('#rows a')].map(a => [a.textContent, a.getAttribute('href')])")
    assert sorted(text for text, _ in links) == sorted(everything)
    assert all((audited.parent / name).is_file() for _, name in links)
    page.open(audited.parent / dict(links)["gemm.exe"])
    assert page.complaints() == [] and "gemm.exe" in page.evaluate("document.querySelector('h1').textContent")


@pytest.mark.browser
def test_stack_choice_sorting_and_picture(page: Any, files: dict[str, Path]) -> None:
    page.open(files["blocked_conv"])
    page.evaluate(
        f"(() => {{const s = document.querySelector('select[name=stack]'); s.value = '{sample_reports.THEROCK}';"
        "s.dispatchEvent(new Event('input', {bubbles: true}));})()"
    )
    assert page.evaluate(SHOWN) == ["STACK-HIP-PATH", "BLAS-PARTIAL"]
    first = "document.querySelector('#a1-fn tbody tr th').textContent"
    before = page.evaluate(first)
    page.evaluate("document.querySelector('#a1-fn thead button').focus()")
    page.key("Enter", "\r")
    page.key("Enter", "\r")
    assert page.evaluate(first) != before
    assert page.evaluate("document.querySelector('#a1-fn thead th').getAttribute('aria-sort')") == "descending"


@pytest.mark.browser
def test_page_is_whole_without_script(page: Any, files: dict[str, Path]) -> None:
    page.call("Emulation.setScriptExecutionDisabled", value=True)
    try:
        page.open(files["blocked_conv"])
        text = page.evaluate("document.body.innerText")
        for wanted in ("DNN-CONV-NO-MIOPEN", "TheRock build of ROCm", "predicted loadable", "cublasGemmEx"):
            assert wanted in text
        assert "press / to type" not in text and page.evaluate("document.querySelector('form').hidden")
    finally:
        page.call("Emulation.setScriptExecutionDisabled", value=False)


@pytest.mark.browser
def test_policy_stops_foreign_script_and_network(page: Any, files: dict[str, Path], tmp_path: Path) -> None:
    """If a name ever got through the escaping, the page's own policy would still stop it."""
    text = files["no_cuda"].read_text(encoding="utf-8")
    broken = tmp_path / "broken.html"
    evil = "<script>window.evil = 1</script><img src='https://example.invalid/x.png' onerror='window.evil = 2'>"
    broken.write_text(text.replace("<h1>", evil + "<h1>"), encoding="utf-8")
    page.open(broken)
    assert page.evaluate("window.evil === undefined")
    assert [url for url in page.requests() if "example" in url] == []
    assert any("Content Security Policy" in complaint for complaint in page.complaints())


@pytest.mark.browser
def test_prints_with_everything_open(page: Any, files: dict[str, Path]) -> None:
    page.open(files["blocked_conv"])
    page.evaluate("document.querySelectorAll('details').forEach(d => d.open = false)")
    page.call("Emulation.setEmulatedMedia", media="print")
    assert page.evaluate("getComputedStyle(document.querySelector('.filter')).display") == "none"
    printed = page.call("Page.printToPDF", printBackground=True)
    page.call("Emulation.setEmulatedMedia", media="")
    assert len(printed["data"]) > 10_000
    assert page.evaluate("[...document.querySelectorAll('details')].every(d => d.open)"), "beforeprint opens all"
