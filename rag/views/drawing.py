"""A pipeline drawn in layers from left to right: places of nodes, ways of edges. Pure.

After Sugiyama, Tagawa and Toda (1981): layers by the longest way from the entry, places of their
own for edges that pass a layer, and order within a layer by the middle of the neighbours.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from common.wording import shortened
from rag.pipelines.definition import Definition, Edge
from rag.pipelines.structure import structure_of

WIDTH, HEIGHT = 152, 48
#: Between layers, and between what stands above each other in one.
ACROSS, BETWEEN = 56, 20
PASSING = 16
MARGIN = 6
LOOP_DROP = 26
SWEEPS = 4
NAME, CONDITION = 19, 90

Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class DrawnNode:
    """A box; `x` and `y` are its upper left corner."""

    id: str
    name: str
    type: str
    x: float
    y: float
    is_entry: bool


@dataclass(frozen=True, slots=True)
class DrawnEdge:
    """`path` is that of SVG; `told` says in words what it is for."""

    path: str
    type: str
    told: str


@dataclass(frozen=True, slots=True)
class Drawing:
    """`words` say the same without a picture."""

    width: float
    height: float
    nodes: tuple[DrawnNode, ...]
    edges: tuple[DrawnEdge, ...]
    words: str


@dataclass(slots=True)
class _Slot:
    """What takes a place in a layer: a node, or an edge that passes (no `node`)."""

    layer: int
    node: str
    before: list["_Slot"]
    after: list["_Slot"]
    y: float = 0.0

    @property
    def height(self) -> float:
        return HEIGHT if self.node else PASSING


def draw(definition: Definition) -> Drawing:
    """The drawing of a definition that was checked."""
    structure = structure_of(definition)
    forward = [edge for edge in definition.edges if edge.type != "loop"]
    layers = _layers(structure.order, forward)
    slots = {id: _Slot(layers[id], id, [], []) for id in structure.order}
    ways = [_way(edge, slots) for edge in forward]
    columns = _columns([*slots.values(), *(slot for way in ways for slot in way[1:-1])])
    _order(columns)
    height = _place(columns)
    loops = [edge for edge in definition.edges if edge.type == "loop"]
    drawn_loops = [
        DrawnEdge(_below(slots[edge.source], slots[edge.target], height, at), "loop", _told(edge))
        for at, edge in enumerate(loops)
    ]
    return Drawing(
        width=len(columns) * (WIDTH + ACROSS) - ACROSS + 2 * MARGIN,
        height=height + (LOOP_DROP * len(loops) + MARGIN if loops else MARGIN),
        nodes=tuple(
            DrawnNode(
                node.id,
                shortened(node.id, NAME),
                node.type,
                _x(slots[node.id]),
                slots[node.id].y,
                node.id == definition.entry,
            )
            for node in definition.nodes
        ),
        edges=(
            *(
                DrawnEdge(_through(way), edge.type, _told(edge))
                for edge, way in zip(forward, ways, strict=True)
            ),
            *drawn_loops,
        ),
        words=_words(definition),
    )


def _layers(order: Sequence[str], edges: Sequence[Edge]) -> Mapping[str, int]:
    layers = dict.fromkeys(order, 0)
    for id in order:
        for edge in edges:
            if edge.source == id:
                layers[edge.target] = max(layers[edge.target], layers[id] + 1)
    return layers


def _way(edge: Edge, slots: Mapping[str, _Slot]) -> list[_Slot]:
    """From the source over a place in every layer between to the target."""
    source, target = slots[edge.source], slots[edge.target]
    between = [_Slot(layer, "", [], []) for layer in range(source.layer + 1, target.layer)]
    way = [source, *between, target]
    for one, other in pairwise(way):
        one.after.append(other)
        other.before.append(one)
    return way


def _columns(slots: Sequence[_Slot]) -> list[list[_Slot]]:
    columns: list[list[_Slot]] = [[] for _ in range(max(slot.layer for slot in slots) + 1)]
    for slot in slots:
        columns[slot.layer].append(slot)
    return columns


def _order(columns: Sequence[list[_Slot]]) -> None:
    """Move each slot towards the middle of its neighbours, forth and back."""
    for sweep in range(SWEEPS):
        back = sweep % 2 == 1
        for column in reversed(columns) if back else columns:
            places = {id(slot): at for each in columns for at, slot in enumerate(each)}
            column.sort(
                key=lambda slot, back=back, places=places: _middle(  # type: ignore[misc]
                    slot, slot.after if back else slot.before, places
                )
            )


def _middle(slot: _Slot, neighbours: Sequence[_Slot], places: Mapping[int, int]) -> float:
    if not neighbours:
        return places[id(slot)]
    return sum(places[id(each)] for each in neighbours) / len(neighbours)


def _place(columns: Sequence[Sequence[_Slot]]) -> float:
    """Set every slot's `y`, each column in the middle; the height of the whole."""
    heights = [
        sum(slot.height for slot in column) + BETWEEN * (len(column) - 1) for column in columns
    ]
    tallest = max(heights)
    for column, height in zip(columns, heights, strict=True):
        y = MARGIN + (tallest - height) / 2
        for slot in column:
            slot.y = y
            y += slot.height + BETWEEN
    return MARGIN + tallest


def _x(slot: _Slot) -> float:
    return MARGIN + slot.layer * (WIDTH + ACROSS)


def _through(way: Sequence[_Slot]) -> str:
    """A smooth line from right edge to left edge, straight through what it passes."""
    parts: list[str] = []
    for one, other in pairwise(way):
        start = (_x(one) + WIDTH, one.y + one.height / 2)
        end = (_x(other), other.y + other.height / 2)
        if not parts:
            parts.append(f"M{_n(start)}")
        parts.append(_bend(start, end))
        if not other.node:
            parts.append(f"H{_x(other) + WIDTH:g}")
    return "".join(parts)


def _bend(start: Point, end: Point) -> str:
    middle = (start[0] + end[0]) / 2
    return f"C{_n((middle, start[1]))} {_n((middle, end[1]))} {_n(end)}"


def _below(source: _Slot, target: _Slot, height: float, number: int) -> str:
    """Back from the source to the target, under everything else."""
    depth = height + LOOP_DROP * (number + 1) - MARGIN
    start = (_x(source) + WIDTH / 2 + 12, source.y + HEIGHT)
    end = (_x(target) + WIDTH / 2 - 12, target.y + HEIGHT)
    radius = 10
    if source is target:
        start, end = (start[0] + 20, start[1]), (end[0] - 20, end[1])
    return (
        f"M{_n(start)}V{depth - radius:g}q0 {radius} -{radius} {radius}"
        f"H{end[0] + radius:g}q-{radius} 0 -{radius} -{radius}V{end[1]:g}"
    )


def _n(point: Point) -> str:
    return f"{point[0]:g} {point[1]:g}"


def _told(edge: Edge) -> str:
    how = {"direct": "then", "conditional": "if", "loop": "back"}[edge.type]
    why = f" {shortened(edge.condition, CONDITION)}" if edge.condition else ""
    return f"{edge.source} → {edge.target} ({how}{why})"


def _words(definition: Definition) -> str:
    names = [f"{node.id} ({node.type})" for node in definition.nodes]
    ways = [_told(edge) for edge in definition.edges]
    return f"Nodes: {', '.join(names)}." + (f" Edges: {'; '.join(ways)}." if ways else "")
