"""Paged lists of neighbours, edges and mentions, with opaque cursors."""

import heapq
import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext

from common.errors import InvalidInput
from common.replicas import reads_from_replica
from graph.models import Mention
from graph.node_ids import natural_sort_key
from graph.reading.results import Link, MentionFound, Neighbour, Page, Truncated
from graph.reading.steps import (
    MAX_PAGE,
    Direction,
    Grain,
    Step,
    check_range,
    make_follow,
    require_vertex,
    step,
)
from graph.reading.vertices import (
    Ref,
    fetch_dicts,
    fetch_rows,
    load_sql,
    load_vertices,
    resolve,
    vertex_rows,
)
from graph.scopes import AccessFilter, GraphScope, Parameters

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
        if not isinstance(place, list) or [type(value) for value in place] != list(shape):
            raise ValueError
    except (ValueError, RecursionError) as error:
        raise InvalidInput(
            gettext(
                "This cursor does not belong to this list. Copy it unchanged from “next” of the"
                " previous page, or leave it out to begin."
            ),
            field="cursor",
        ) from error
    return tuple(place)


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


@reads_from_replica
def neighbors(
    *,
    scope: GraphScope,
    id: str,
    rel: str | Sequence[str] = (),
    direction: Direction = "both",
    grain: Grain = "document",
    limit: int = 100,
    cursor: str = "",
) -> Page[Neighbour]:
    """Vertices related to `id`, by any or the named relations, in natural order (`:2` before
    `:10`).

    `grain`: whether documents or passages mention a node. `cursor` is `next` of the previous
    page. Raises NotFound and InvalidInput.
    """
    check_range(limit, MAX_PAGE, field="limit")
    seen = AccessFilter(scope)
    vertex = require_vertex(seen, id, props=True)
    follow = make_follow([vertex], [rel] if isinstance(rel, str) and rel else rel, direction, grain)
    after = decode_cursor(cursor, str, str, bool)
    steps, hubs = step(
        seen, [vertex.ref], follow, fan=MAX_NEIGHBOURS, mentions=MAX_NEIGHBOUR_MENTIONS
    )
    # Without duplicates, of which the larger weight counts.
    best: dict[tuple[Ref, str, bool], Step] = {}
    for each in steps:
        name = (each.to, each.rel, each.outgoing)
        if name not in best or best[name].weight < each.weight:
            best[name] = each
    vertices = load_vertices(seen, {each.to for each in best.values()})
    visible = [
        ((vertices[each.to].id, each.rel, each.outgoing), each)
        for each in best.values()
        if each.to in vertices
    ]
    behind = (pair for pair in visible if after is None or _order(pair[0]) > _order(after))
    page = heapq.nsmallest(limit + 1, behind, key=lambda pair: _order(pair[0]))
    return Page(
        vertex=vertex,
        items=_with_props(seen, [each for _, each in page[:limit]]),
        total=len(visible),
        next=encode_cursor(page[limit - 1][0]) if len(page) > limit else "",
        truncated=Truncated(hubs=(vertex.id,) if hubs else ()),
    )


def _order(place: Sequence[Any]) -> tuple[Any, ...]:
    """Sort key of the place of a neighbour: id, relation, direction."""
    return natural_sort_key(place[0]), *place[1:]


def _with_props(seen: AccessFilter, steps: Sequence[Step]) -> tuple[Neighbour, ...]:
    """Neighbours with their properties, and those of edges up to the limit."""
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


def list_edges(
    *,
    scope: GraphScope,
    source: str | None = None,
    rel: str | None = None,
    target: str | None = None,
    limit: int = 50,
    cursor: str = "",
) -> tuple[list[Link], str]:
    """Edges with this `source`, `rel` and `target`, as far as given, newest first, and the cursor
    of the next page. With all three it is at most one edge, with its properties.

    Raises InvalidInput for an invalid cursor.
    """
    seen = AccessFilter(scope)
    given: Parameters = {"limit": limit + 1, "with_props": None not in (source, rel, target)}
    filters = ["TRUE"]
    if place := decode_cursor(cursor, int):
        filters.append("edge.id < %(before)s")
        given["before"] = place[0]
    if rel is not None:
        filters.append("edge.rel = %(rel)s")
        given["rel"] = rel
    named = {name: end for name, end in (("source", source), ("target", target)) if end is not None}
    rows_of = vertex_rows(resolve(seen, named.values()))
    for name, end in named.items():
        filters.append(f"edge.{name}_id = %({name})s")
        given[name] = rows_of.get(end)
    statement = load_sql("list_edges").format(
        edge=seen.edge("edge"),
        source=seen.node("source"),
        target=seen.node("target"),
        filter=" AND ".join(filters),
    )
    rows = fetch_dicts(statement, seen.parameters | given)
    shown = rows[:limit]
    ends = [
        (Ref(row["source_kind"], row["source_pk"]), Ref(row["target_kind"], row["target_pk"]))
        for row in shown
    ]
    vertices = load_vertices(seen, {ref for pair in ends for ref in pair})
    links = [
        Link(
            source=vertices[first].id,
            rel=row["rel"],
            target=vertices[last].id,
            weight=row["weight"],
            origin=row["origin"],
            props=None if row["props"] is None else json.loads(row["props"]),
        )
        for row, (first, last) in zip(shown, ends, strict=True)
        if first in vertices and last in vertices
    ]
    return links, encode_cursor([shown[-1]["id"]]) if len(rows) > limit else ""


#: Characters of text before and after a mention.
SNIPPET_CONTEXT = 120


@reads_from_replica
def mentions_of(
    *, scope: GraphScope, id: str, limit: int = 20, cursor: str = ""
) -> Page[MentionFound]:
    """Passages that mention node `id`, by document and position; none for vertices other than
    nodes. Raises NotFound and InvalidInput.
    """
    check_range(limit, MAX_PAGE, field="limit")
    seen = AccessFilter(scope)
    vertex = require_vertex(seen, id, props=True)
    document, ordinal = decode_cursor(cursor, int, int) or (0, -1)
    if vertex.kind != "node":
        return Page(vertex, ())
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
            **{name: row[name] for name in ("count", "start", "end", "snippet", "snippet_start")},
        )
        for row in shown
        if (passage := vertices.get(Ref("chunk", row["chunk_id"])))
        and (container := vertices.get(Ref("document", row["document_id"])))
    )
    last = (shown[-1]["document_id"], shown[-1]["ordinal"]) if len(found) > limit else ()
    return Page(vertex, items, encode_cursor(last) if last else "")
