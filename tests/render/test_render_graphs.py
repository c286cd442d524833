"""Mermaid and DOT of a folder are one diagram each."""

from __future__ import annotations

import re

import msgspec
import pytest
import sample_reports

from zcheck.model.report import Applications
from zcheck.render import RenderOptions, render
from zcheck.render.mermaid import MAX_EDGES, MAX_NODES, MAX_PARTS


def folder(count: int) -> Applications:
    """As many copies of one program, whose modules all have the same names."""
    base = sample_reports.blocked_conv()
    reports = tuple(msgspec.structs.replace(base, target=f"v{number}/upscale.exe") for number in range(count))
    return msgspec.structs.replace(sample_reports.applications(), applications=reports)


def test_mermaid_of_a_folder_is_one_graph_with_a_part_for_each_program() -> None:
    lines = render(folder(3), "mermaid").splitlines()
    assert lines[0] == "graph LR" and lines.count("graph LR") == 1
    parts = [line for line in lines if line.startswith("  subgraph ")]
    assert parts == [f'  subgraph a{n + 1}["v{n}/upscale.exe"]' for n in range(3)]
    assert lines.count("  end") == 3
    ids = re.findall(r"^ +(\w+)\[", "\n".join(line for line in lines if "subgraph" not in line), re.M)
    assert len(ids) == len(set(ids)) == 3 * 7
    # Each edge is drawn where its nodes are, and a class is said once.
    for number in range(1, 4):
        part = lines[lines.index(parts[number - 1]) :]
        edges = [line for line in part[: part.index("  end")] if "->" in line]
        assert len(edges) == 7 and all(set(re.findall(r"a\d+", line)) == {f"a{number}"} for line in edges)
    named = [line.split()[1] for line in lines if "classDef" in line]
    assert len(named) == len(set(named)) and lines[-1].startswith("  classDef ")


@pytest.mark.parametrize("count", [5, MAX_PARTS + 12])
def test_a_big_folder_is_not_too_big_to_draw(count: int) -> None:
    text = render(folder(count), "mermaid")
    drawn = [line for line in text.splitlines() if "%%" not in line]
    assert len([line for line in drawn if "]:::" in line]) <= max(MAX_NODES, 4 * MAX_PARTS)
    assert len([line for line in drawn if "->" in line]) <= MAX_EDGES <= 500  # where Mermaid stops
    assert ("12 more applications not drawn" in text) == (count > MAX_PARTS)


def test_dot_of_a_folder_is_one_digraph_with_a_cluster_for_each_program() -> None:
    text = render(folder(3), "dot", RenderOptions(verbose=True))
    bare = re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: '"' + "x" * (len(found[0]) - 2) + '"', text)
    assert len(re.findall(r"^digraph", bare, re.M)) == 1 and bare.count("{") == bare.count("}") == 4
    assert re.findall(r"^  subgraph (\w+) \{$", text, re.M) == ["cluster_1", "cluster_2", "cluster_3"]
    nodes = re.findall(r'^ +("[^"]+") \[label', text, re.M)
    assert len(nodes) == len(set(nodes)) == 3 * 8
    edges = re.findall(r'^ +("[^"]+") -> ("[^"]+") \[', text, re.M)
    assert len(edges) == 3 * 8 and {name for edge in edges for name in edge} <= set(nodes)


def test_a_program_without_modules_has_its_part() -> None:
    product = msgspec.structs.replace(folder(1), applications=(sample_reports.report("empty.exe", ()),))
    assert 'a1n0["empty.exe"]' in render(product, "mermaid") and "empty.exe" in render(product, "dot")
