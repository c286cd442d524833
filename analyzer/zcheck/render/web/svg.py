"""The dependency graph as SVG: a column for each depth, colours by who answers, lines by how the edge arises.

The lay-out is linear in nodes and edges: layers by breadth-first depth, one sweep that puts a module near those that
need it, long layers broken into several columns. Nothing is computed in the browser.
"""

from __future__ import annotations

import math

from markupsafe import Markup, escape

from zcheck.model.base import Record
from zcheck.render import graphview
from zcheck.render.safe import visible

WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 190, 36, 64, 12, 12
LABEL = 24
# Above this many edges they are joined into one path a kind: a browser draws few long paths faster than many short.
JOIN_ABOVE = 600


class Box(Record, frozen=True):
    """Where a node stands, in pixels."""

    x: int
    y: int
    layer: int


def layout(seen: graphview.View) -> tuple[dict[str, Box], int, int]:
    """Boxes by name, and the picture's width and height."""
    layers: dict[int, list[str]] = {}
    for node in seen.nodes:
        layers.setdefault(node.depth, []).append(node.name)
    users: dict[str, list[str]] = {}
    for edge in seen.edges:
        users.setdefault(edge.target, []).append(edge.source)
    rows = max(12, math.ceil(math.sqrt(len(seen.nodes)) * 1.3))
    rank: dict[str, float] = {}
    boxes: dict[str, Box] = {}
    x = MARGIN
    bottom = 0
    for depth in sorted(layers):
        names = layers[depth]
        above = {name: [rank[user] for user in users.get(name, ()) if user in rank] for name in names}
        names.sort(
            key=lambda name: (sum(above[name]) / len(above[name]) if above[name] else math.inf, name.lower(), name)
        )
        columns = math.ceil(len(names) / rows)
        per_column = math.ceil(len(names) / columns)
        for position, name in enumerate(names):
            rank[name] = position / len(names)
            column, row = divmod(position, per_column)
            boxes[name] = Box(x + column * (WIDTH + GAP_X // 2), MARGIN + row * (HEIGHT + GAP_Y), depth)
            bottom = max(bottom, boxes[name].y + HEIGHT)
        x += columns * (WIDTH + GAP_X // 2) - GAP_X // 2 + GAP_X
    return boxes, max(x - GAP_X, 0) + MARGIN, bottom + MARGIN


def _curve(source: Box, target: Box) -> str:
    y1, y2 = source.y + HEIGHT // 2, target.y + HEIGHT // 2
    if target.layer > source.layer:
        x1, x2 = source.x + WIDTH, target.x
        bend = max(24, (x2 - x1) // 2)
        return f"M{x1} {y1}C{x1 + bend} {y1} {x2 - bend} {y2} {x2} {y2}"
    x1, x2 = source.x + WIDTH, target.x + WIDTH  # back or sideways: around the right side
    bend = max(x1, x2) + GAP_X // 2
    return f"M{x1} {y1}C{bend} {y1} {bend} {y2} {x2} {y2}"


def draw(seen: graphview.View, stacks: tuple[str, ...], ident: str) -> Markup:
    """The picture for the first stack; each node carries its role on every stack for the page's switch.

    ``ident`` makes the ids of the title and description unique in a page.
    """
    boxes, width, height = layout(seen)
    first = stacks[0] if stacks else None
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}" '
        f'role="img" aria-labelledby="{ident}-t {ident}-d" class="graph"><title id="{ident}-t">Dependency graph</title>'
        f'<desc id="{ident}-d">{len(seen.nodes)} modules and {len(seen.edges)} dependencies, from the program on the '
        f"left to the deepest on the right; the list below says the same in words.</desc>"
    ]
    parts += _edges(seen, boxes)
    for node in seen.nodes:
        box, role = boxes[node.name], node.role(first)
        name = visible(node.name)
        label = name if len(name) <= LABEL else name[: LABEL - 9] + "…" + name[-8:]
        roles = " ".join(node.role(stack) for stack in stacks)
        mark = f" s-{node.severity}" if node.severity in ("blocker", "risk") else ""
        parts.append(
            f'<g class="n r-{escape(role)}{mark}" data-r="{escape(roles)}">'
            f"<title>{escape(name)}: {escape(role)}</title>"
            f'<rect x="{box.x}" y="{box.y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{box.x + 8}" y="{box.y + 15}">{escape(label)}</text>'
            f'<text class="role" x="{box.x + 8}" y="{box.y + 29}">'
            f"{escape('program' if node.kind == 'entry' else role)}</text></g>"
        )
    parts.append("</svg>")
    return Markup("".join(parts))


def _edges(seen: graphview.View, boxes: dict[str, Box]) -> list[str]:
    curves = [
        (edge, _curve(boxes[edge.source], boxes[edge.target])) for edge in seen.edges if edge.source != edge.target
    ]
    if len(curves) > JOIN_ABOVE:
        joined: dict[str, list[str]] = {}
        for edge, curve in curves:
            joined.setdefault(edge.kinds[0], []).append(curve)
        return [f'<path class="e k-{kind}" d="{"".join(parts)}"/>' for kind, parts in sorted(joined.items())]
    paths = []
    for edge, curve in curves:
        kinds = ", ".join(graphview.KIND_WORDS[kind] for kind in edge.kinds)
        title = escape(f"{visible(edge.source)} → {visible(edge.target)}: {kinds}")
        paths.append(f'<path class="e k-{edge.kinds[0]}" d="{curve}"><title>{title}</title></path>')
    return paths
