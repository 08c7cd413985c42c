"""What is beside a vertex, page by page in natural order."""

import heapq
import json
from collections.abc import Iterable, Mapping
from typing import Any

from graph.keys import natural_order
from graph.reading import cursors
from graph.reading.results import Neighbour, NeighbourPage, Truncated
from graph.reading.statements import rows
from graph.reading.steps import Follow, Step, step
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Sight

#: Of so many neighbours by one kind of relation are there pages.
MOST = 100_000
#: So many mentions are counted for them.
MOST_MENTIONS = 500_000

#: Bytes of properties on one page. The edges behind come without theirs.
MOST_PROPS = 8 * 1024 * 1024
_PROPS = """
    SELECT id, CASE WHEN sum(octet_length(props::text)) OVER (ORDER BY place) <= %(most)s
               THEN props END
    FROM graph_edge JOIN unnest(%(edges)s::bigint[]) WITH ORDINALITY AS asked (id, place) USING (id)
"""


def neighbours_of(
    seen: Sight, vertex: Vertex, follow: Follow, *, limit: int, cursor: str = ""
) -> NeighbourPage:
    """A page of what is related to `vertex`. Raises InvalidInput for a cursor that is none."""
    after = cursors.read(cursor, str, str, bool)
    stepped = step(seen, [vertex.ref], follow, fan=MOST, mentions=MOST_MENTIONS)
    found = _once(stepped.steps)
    vertices = load(seen, {each.to for each in found})
    told = [each for each in found if each.to in vertices]
    behind = (
        each for each in told if after is None or _order(vertices, each) > _place_order(*after)
    )
    page = heapq.nsmallest(limit + 1, behind, key=lambda each: _order(vertices, each))
    shown = page[:limit]
    return NeighbourPage(
        vertex=vertex,
        items=_neighbours(seen, shown),
        total=len(told),
        next=cursors.written(_place(vertices, shown[-1])) if len(page) > limit else "",
        truncated=Truncated(hubs=(vertex.id,) if stepped.hubs else ()),
    )


def _once(steps: Iterable[Step]) -> list[Step]:
    """Two rows of one document may tell the same: that of the larger weight."""
    best: dict[tuple[Ref, str, bool], Step] = {}
    for each in steps:
        name = (each.to, each.rel, each.outgoing)
        if name not in best or best[name].weight < each.weight:
            best[name] = each
    return list(best.values())


def _neighbours(seen: Sight, steps: Iterable[Step]) -> tuple[Neighbour, ...]:
    steps = list(steps)
    vertices = load(seen, {each.to for each in steps}, props=True)
    props = _edge_props(steps)
    return tuple(
        Neighbour(
            vertex=vertices[each.to],
            rel=each.rel,
            outgoing=each.outgoing,
            weight=each.weight,
            origin=each.origin,
            props=props.get(each.edge, {}),
        )
        for each in steps
        if each.to in vertices
    )


def _edge_props(steps: Iterable[Step]) -> Mapping[int | None, Any]:
    edges = [each.edge for each in steps if each.edge is not None]
    if not edges:
        return {}
    found = rows(_PROPS, {"edges": edges, "most": MOST_PROPS})
    return {pk: None if props is None else json.loads(props) for pk, props in found}


def _place(vertices: Mapping[Ref, Vertex], each: Step) -> tuple[str, str, bool]:
    return vertices[each.to].id, each.rel, each.outgoing


def _order(vertices: Mapping[Ref, Vertex], each: Step) -> tuple[Any, ...]:
    return _place_order(*_place(vertices, each))


def _place_order(node_id: str, rel: str, outgoing: bool) -> tuple[Any, ...]:
    return natural_order(node_id), rel, outgoing
