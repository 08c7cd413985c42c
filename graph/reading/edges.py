"""Edges as their rows say them, a page at a time."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from graph.reading import cursors
from graph.reading.resolving import resolve
from graph.reading.results import Link
from graph.reading.statements import named_rows, piece, rows
from graph.reading.vertices import Ref, Vertex, load
from graph.scopes import Parameters, Sight

_ROWS = {
    "document": "SELECT id FROM graph_node WHERE document_id = %(pk)s",
    "chunk": "SELECT id FROM graph_node WHERE chunk_id = %(pk)s",
}


@dataclass(frozen=True, slots=True)
class ListedEdge:
    """An edge; `props` is None where they were not asked for."""

    link: Link
    props: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class EdgePage:
    """Edges, the newest first. `next` is the cursor of the page behind this one or empty."""

    items: tuple[ListedEdge, ...]
    next: str = ""


def list_edges(
    seen: Sight,
    *,
    source: str | None = None,
    rel: str | None = None,
    target: str | None = None,
    limit: int = 50,
    cursor: str = "",
) -> EdgePage:
    """Those that begin at `source`, are called `rel` and lead to `target`, as far as these are
    named. Where all are, it is one edge at most, and it comes with its properties.

    Raises InvalidInput for a cursor that is none.
    """
    given: Parameters = {"limit": limit + 1, "with_props": None not in (source, rel, target)}
    filters = ["TRUE"]
    if place := cursors.read(cursor, int):
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
            given[name] = _rows_of(found.get(end))
    statement = piece("list_edges").format(
        edge=seen.edge("edge"),
        source=seen.node("source"),
        target=seen.node("target"),
        filter=" AND ".join(filters),
    )
    edges = named_rows(statement, seen.parameters | given)
    items = _listed(seen, edges[:limit])
    return EdgePage(items, cursors.written([edges[limit - 1]["id"]]) if edges[limit:] else "")


def _listed(seen: Sight, edges: list[dict[str, Any]]) -> tuple[ListedEdge, ...]:
    ends = [(_ref(edge, "source"), _ref(edge, "target")) for edge in edges]
    names = {ref: vertex.id for ref, vertex in load(seen, {*sum(ends, ())}).items()}
    return tuple(
        ListedEdge(
            Link(names[source], edge["rel"], names[target], edge["weight"], edge["origin"]),
            None if edge["props"] is None else json.loads(edge["props"]),
        )
        for edge, (source, target) in zip(edges, ends, strict=True)
        if source in names and target in names
    )


def _ref(edge: Mapping[str, Any], end: str) -> Ref:
    """What the row at this end stands for."""
    if (document := edge[f"{end}_document"]) is not None:
        return Ref("document", document)
    if (chunk := edge[f"{end}_chunk"]) is not None:
        return Ref("chunk", chunk)
    return Ref("node", edge[f"{end}_id"])


def _rows_of(vertex: Vertex | None) -> list[int]:
    """The rows of `graph_node` that stand for it."""
    if vertex is None:
        return []
    if vertex.kind == "node":
        return [vertex.pk]
    return [pk for (pk,) in rows(_ROWS[vertex.kind], {"pk": vertex.pk})]
