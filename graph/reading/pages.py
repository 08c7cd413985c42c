"""Paged lists of neighbours, edges and mentions, with opaque cursors."""

import heapq
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import InvalidInput
from graph.models import Mention
from graph.node_ids import natural_sort_key
from graph.reading.results import (
    Link,
    MentionFound,
    MentionPage,
    Neighbour,
    NeighbourPage,
    Truncated,
)
from graph.reading.steps import Follow, Step, step
from graph.reading.vertices import (
    Ref,
    Vertex,
    fetch_dicts,
    fetch_rows,
    load_sql,
    load_vertices,
    resolve,
)
from graph.scopes import AccessFilter, Parameters

MAX_CHARACTERS = 10_000


def encode_cursor(place: Sequence[str | int | bool]) -> str:
    """The cursor of a position."""
    return urlsafe_b64encode(json.dumps(list(place)).encode()).decode().rstrip("=")


def decode_cursor(cursor: str, *shape: type) -> tuple[Any, ...] | None:
    """The position, with values of these types; None for the beginning. Raises InvalidInput."""
    if not cursor:
        return None
    try:
        if len(cursor) > MAX_CHARACTERS:
            raise ValueError
        place = json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except (ValueError, RecursionError) as error:
        raise _invalid_cursor() from error
    if not isinstance(place, list) or [type(value) for value in place] != list(shape):
        raise _invalid_cursor()
    return tuple(place)


def _invalid_cursor() -> InvalidInput:
    return InvalidInput(
        "This is no cursor of this list. Take it from “next” of the page before, unchanged, or"
        " leave it out to begin.",
        field="cursor",
    )


#: Most neighbours per kind of relation over all pages.
MAX_NEIGHBOURS = 100_000
#: Most mentions scanned for them.
MAX_NEIGHBOUR_MENTIONS = 500_000

#: Bytes of properties on one page. The edges behind come without theirs.
MAX_PROPS_BYTES = 8 * 1024 * 1024
_EDGE_PROPS_SQL = """
    SELECT id, CASE WHEN sum(octet_length(props::text)) OVER (ORDER BY place) <= %(most)s
               THEN props END
    FROM graph_edge JOIN unnest(%(edges)s::bigint[]) WITH ORDINALITY AS asked (id, place) USING (id)
"""


def neighbours_of(
    seen: AccessFilter, vertex: Vertex, follow: Follow, *, limit: int, cursor: str = ""
) -> NeighbourPage:
    """A page of neighbours of `vertex`. Raises InvalidInput for an invalid cursor."""
    after = decode_cursor(cursor, str, str, bool)
    stepped = step(seen, [vertex.ref], follow, fan=MAX_NEIGHBOURS, mentions=MAX_NEIGHBOUR_MENTIONS)
    # Without duplicates, of which the larger weight counts.
    best: dict[tuple[Ref, str, bool], Step] = {}
    for each in stepped.steps:
        name = (each.to, each.rel, each.outgoing)
        if name not in best or best[name].weight < each.weight:
            best[name] = each
    found = list(best.values())
    vertices = load_vertices(seen, {each.to for each in found})
    visible = [each for each in found if each.to in vertices]
    behind = (
        each
        for each in visible
        if after is None or _sort_key(vertices, each) > _position_sort_key(*after)
    )
    page = heapq.nsmallest(limit + 1, behind, key=lambda each: _sort_key(vertices, each))
    shown = page[:limit]
    return NeighbourPage(
        vertex=vertex,
        items=_neighbours(seen, shown),
        total=len(visible),
        next=encode_cursor(_position(vertices, shown[-1])) if len(page) > limit else "",
        truncated=Truncated(hubs=(vertex.id,) if stepped.hubs else ()),
    )


def _neighbours(seen: AccessFilter, steps: Iterable[Step]) -> tuple[Neighbour, ...]:
    steps = list(steps)
    vertices = load_vertices(seen, {each.to for each in steps}, props=True)
    edges = [each.edge for each in steps if each.edge is not None]
    props: dict[int | None, Any] = {}
    if edges:
        for pk, text in fetch_rows(_EDGE_PROPS_SQL, {"edges": edges, "most": MAX_PROPS_BYTES}):
            props[pk] = None if text is None else json.loads(text)
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


def _position(vertices: Mapping[Ref, Vertex], each: Step) -> tuple[str, str, bool]:
    return vertices[each.to].id, each.rel, each.outgoing


def _sort_key(vertices: Mapping[Ref, Vertex], each: Step) -> tuple[Any, ...]:
    return _position_sort_key(*_position(vertices, each))


def _position_sort_key(node_id: str, rel: str, outgoing: bool) -> tuple[Any, ...]:
    return natural_sort_key(node_id), rel, outgoing


_NODE_ROWS_SQL = {
    "document": "SELECT id FROM graph_node WHERE document_id = %(pk)s",
    "chunk": "SELECT id FROM graph_node WHERE chunk_id = %(pk)s",
}


@dataclass(frozen=True, slots=True)
class ListedEdge:
    """An edge; `props` is None unless requested."""

    link: Link
    props: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class EdgePage:
    """Edges, newest first. `next` is the cursor of the next page, or empty."""

    items: tuple[ListedEdge, ...]
    next: str = ""


def list_edges(
    seen: AccessFilter,
    *,
    source: str | None = None,
    rel: str | None = None,
    target: str | None = None,
    limit: int = 50,
    cursor: str = "",
) -> EdgePage:
    """Edges with this `source`, `rel` and `target`, as far as given. With all three it is at most
    one edge, with its properties.

    Raises InvalidInput for an invalid cursor.
    """
    given: Parameters = {"limit": limit + 1, "with_props": None not in (source, rel, target)}
    filters = ["TRUE"]
    if place := decode_cursor(cursor, int):
        filters.append("edge.id < %(before)s")
        given["before"] = place[0]
    if rel is not None:
        filters.append("edge.rel = %(rel)s")
        given["rel"] = rel
    ends = {"source": source, "target": target}
    found = resolve(seen, [end for end in ends.values() if end is not None])
    for name, end in ends.items():
        if end is not None:
            filters.append(f"edge.{name}_id = ANY(%({name})s)")
            given[name] = _node_rows(found.get(end))
    statement = load_sql("list_edges").format(
        edge=seen.edge("edge"),
        source=seen.node("source"),
        target=seen.node("target"),
        filter=" AND ".join(filters),
    )
    edges = fetch_dicts(statement, seen.parameters | given)
    items = _listed_edges(seen, edges[:limit])
    return EdgePage(items, encode_cursor([edges[limit - 1]["id"]]) if edges[limit:] else "")


def _listed_edges(seen: AccessFilter, edges: list[dict[str, Any]]) -> tuple[ListedEdge, ...]:
    ends = [(_end_ref(edge, "source"), _end_ref(edge, "target")) for edge in edges]
    names = {ref: vertex.id for ref, vertex in load_vertices(seen, {*sum(ends, ())}).items()}
    return tuple(
        ListedEdge(
            Link(names[source], edge["rel"], names[target], edge["weight"], edge["origin"]),
            None if edge["props"] is None else json.loads(edge["props"]),
        )
        for edge, (source, target) in zip(edges, ends, strict=True)
        if source in names and target in names
    )


def _end_ref(edge: Mapping[str, Any], end: str) -> Ref:
    """The vertex that the row at this end stands for."""
    if (document := edge[f"{end}_document"]) is not None:
        return Ref("document", document)
    if (chunk := edge[f"{end}_chunk"]) is not None:
        return Ref("chunk", chunk)
    return Ref("node", edge[f"{end}_id"])


def _node_rows(vertex: Vertex | None) -> list[int]:
    """Rows of `graph_node` that stand for the vertex."""
    if vertex is None:
        return []
    if vertex.kind == "node":
        return [vertex.pk]
    return [pk for (pk,) in fetch_rows(_NODE_ROWS_SQL[vertex.kind], {"pk": vertex.pk})]


#: Characters of text before and after a mention.
SNIPPET_CONTEXT = 120


def mentions_of_node(
    seen: AccessFilter, vertex: Vertex, *, limit: int, cursor: str = ""
) -> MentionPage:
    """A page of mentions, by document and position; none for vertices other than nodes. Raises
    InvalidInput for an invalid cursor.
    """
    document, ordinal = decode_cursor(cursor, int, int) or (0, -1)
    if vertex.kind != "node":
        return MentionPage(vertex, ())
    statement = load_sql("mentions").format(chunk=seen.passage("chunk"))
    place = {"node": vertex.pk, "document": document, "ordinal": ordinal, "limit": limit + 1}
    found = fetch_dicts(statement, seen.parameters | place | {"around": SNIPPET_CONTEXT})
    shown = found[:limit]
    vertices = load_vertices(
        seen,
        {Ref("chunk", row["chunk_id"]) for row in shown}
        | {Ref("document", row["document_id"]) for row in shown},
    )
    items = tuple(
        MentionFound(
            passage=passage,
            document=container,
            kind=Mention.Kind(row["kind"]).name.lower(),
            count=row["count"],
            start=row["start"],
            end=row["end"],
            snippet=row["snippet"],
            snippet_start=row["snippet_start"],
        )
        for row in shown
        if (passage := vertices.get(Ref("chunk", row["chunk_id"])))
        and (container := vertices.get(Ref("document", row["document_id"])))
    )
    last = (shown[-1]["document_id"], shown[-1]["ordinal"]) if len(found) > limit else ()
    return MentionPage(vertex, items, encode_cursor(last) if last else "")
