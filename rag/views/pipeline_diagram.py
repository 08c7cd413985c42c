"""Lay out a pipeline in layers from left to right and draw it as SVG. Begin with `draw_diagram`.

After Sugiyama, Tagawa and Toda (1981): layers by the longest path from the entry, dummy slots for
edges that cross a layer, order within a layer by the mean position of the neighbours.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from common.text import truncated
from rag.pipelines.definition import Definition, Edge, structure_of

WIDTH, HEIGHT = 152, 48
#: Gap between layers, and between slots of one layer.
LAYER_GAP, SLOT_GAP = 56, 20
DUMMY_HEIGHT = 16
MARGIN = 6
LOOP_DROP = 26
SWEEPS = 4
MAX_NAME_CHARACTERS, MAX_CONDITION_CHARACTERS = 19, 90

Point = tuple[float, float]


@dataclass(slots=True)
class _Slot:
    """A place in a layer: a node, or an edge that crosses the layer (no `node`)."""

    layer: int
    node: str
    before: list["_Slot"]
    after: list["_Slot"]
    y: float = 0.0

    @property
    def height(self) -> float:
        return HEIGHT if self.node else DUMMY_HEIGHT


def draw_diagram(definition: Definition) -> dict[str, Any]:
    """The diagram of a parsed definition: its size, a box for each node with its upper left corner,
    an SVG path for each edge, and all of it in words."""
    structure = structure_of(definition)
    forward = [edge for edge in definition.edges if edge.type != "loop"]
    layers = dict.fromkeys(structure.order, 0)
    for id in structure.order:
        for edge in forward:
            if edge.source == id:
                layers[edge.target] = max(layers[edge.target], layers[id] + 1)
    slots = {id: _Slot(layers[id], id, [], []) for id in structure.order}
    # The slots of each edge: its source, one in every layer between, its target.
    ways = []
    for edge in forward:
        source, target = slots[edge.source], slots[edge.target]
        between = [_Slot(layer, "", [], []) for layer in range(source.layer + 1, target.layer)]
        ways.append([source, *between, target])
        for one, other in pairwise(ways[-1]):
            one.after.append(other)
            other.before.append(one)
    columns = _order_slots([*slots.values(), *(slot for way in ways for slot in way[1:-1])])
    height = _assign_y(columns)
    loops = [edge for edge in definition.edges if edge.type == "loop"]
    paths = [*zip(forward, map(_edge_path, ways), strict=True)]
    paths += [
        (edge, _loop_path(slots[edge.source], slots[edge.target], height, at))
        for at, edge in enumerate(loops)
    ]
    names = ", ".join(f"{node.id} ({node.type})" for node in definition.nodes)
    words = f"Nodes: {names}."
    if definition.edges:
        words += f" Edges: {'; '.join(map(_describe_edge, definition.edges))}."
    return {
        "width": len(columns) * (WIDTH + LAYER_GAP) - LAYER_GAP + 2 * MARGIN,
        "height": height + (LOOP_DROP * len(loops) + MARGIN if loops else MARGIN),
        "nodes": [
            {
                "id": node.id,
                "name": truncated(node.id, MAX_NAME_CHARACTERS),
                "type": node.type,
                "x": _x(slots[node.id]),
                "y": slots[node.id].y,
                "is_entry": node.id == definition.entry,
            }
            for node in definition.nodes
        ],
        "edges": [
            {"path": path, "type": edge.type, "description": _describe_edge(edge)}
            for edge, path in paths
        ],
        "words": words,
    }


def _order_slots(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    """The slots of each layer; each is moved towards the mean position of its neighbours, in both
    directions, so that few edges cross."""
    columns: list[list[_Slot]] = [[] for _ in range(max(slot.layer for slot in slots) + 1)]
    for slot in slots:
        columns[slot.layer].append(slot)
    for sweep in range(SWEEPS):
        back = sweep % 2 == 1
        for column in reversed(columns) if back else columns:
            places = {id(slot): at for each in columns for at, slot in enumerate(each)}
            means = {}
            for slot in column:
                near = [places[id(each)] for each in (slot.after if back else slot.before)]
                means[id(slot)] = sum(near) / len(near) if near else places[id(slot)]
            column.sort(key=lambda slot, means=means: means[id(slot)])  # type: ignore[misc]
    return columns


def _assign_y(columns: Sequence[Sequence[_Slot]]) -> float:
    """Set every slot's `y`, each layer centred; returns the total height."""
    heights = [
        sum(slot.height for slot in column) + SLOT_GAP * (len(column) - 1) for column in columns
    ]
    tallest = max(heights)
    for column, height in zip(columns, heights, strict=True):
        y = MARGIN + (tallest - height) / 2
        for slot in column:
            slot.y = y
            y += slot.height + SLOT_GAP
    return MARGIN + tallest


def _x(slot: _Slot) -> float:
    return MARGIN + slot.layer * (WIDTH + LAYER_GAP)


def _edge_path(way: Sequence[_Slot]) -> str:
    """A smooth curve from right edge to left edge, through the dummy slots."""
    parts: list[str] = []
    for one, other in pairwise(way):
        start = (_x(one) + WIDTH, one.y + one.height / 2)
        end = (_x(other), other.y + other.height / 2)
        if not parts:
            parts.append(f"M{_point(start)}")
        middle = (start[0] + end[0]) / 2
        curve = f"C{_point((middle, start[1]))} {_point((middle, end[1]))} {_point(end)}"
        parts.append(curve)
        if not other.node:
            parts.append(f"H{_x(other) + WIDTH:g}")
    return "".join(parts)


def _loop_path(source: _Slot, target: _Slot, height: float, number: int) -> str:
    """A loop back from the source to the target, below everything else."""
    depth = height + LOOP_DROP * (number + 1) - MARGIN
    start = (_x(source) + WIDTH / 2 + 12, source.y + HEIGHT)
    end = (_x(target) + WIDTH / 2 - 12, target.y + HEIGHT)
    radius = 10
    if source is target:
        start, end = (start[0] + 20, start[1]), (end[0] - 20, end[1])
    return (
        f"M{_point(start)}V{depth - radius:g}q0 {radius} -{radius} {radius}"
        f"H{end[0] + radius:g}q-{radius} 0 -{radius} -{radius}V{end[1]:g}"
    )


def _point(point: Point) -> str:
    return f"{point[0]:g} {point[1]:g}"


def _describe_edge(edge: Edge) -> str:
    how = {"direct": "then", "conditional": "if", "loop": "back"}[edge.type]
    why = f" {truncated(edge.condition, MAX_CONDITION_CHARACTERS)}" if edge.condition else ""
    return f"{edge.source} → {edge.target} ({how}{why})"
