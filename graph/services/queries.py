"""Read access to the graph within one scope: find, neighbours, paths, subgraphs,
statistics, export.
"""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from common.errors import InvalidInput, NotFound
from common.replicas import reads_from_replica
from graph.extraction.normalized_names import normalize_name
from graph.reading.export import (
    GRAPHML_HEAD,
    GRAPHML_TAIL,
    all_links,
    all_vertices,
    edges_text,
    nodes_text,
)
from graph.reading.pages import mentions_of_node, neighbours_of
from graph.reading.results import (
    GraphStatistics,
    MentionPage,
    NeighbourPage,
    PathFound,
    Subgraph,
    Traversal,
)
from graph.reading.search import search_vertices
from graph.reading.statistics import compute_statistics
from graph.reading.steps import DIRECTIONS, GRAINS, Direction, Follow, Grain
from graph.reading.traversal import find_shortest_path, subgraph_around, traverse_from
from graph.reading.vertices import KINDS, Kind, Ref, Vertex, resolve
from graph.scopes import AccessFilter, GraphScope, access_filter

MAX_DEPTH = 100
MAX_HOPS = 5
MAX_REACHED = 10_000
MAX_VERTICES = 5_000
MAX_PAGE = 1_000
MAX_FOUND = 100
#: Names of relations, or labels, that one call may name.
MAX_NAMES = 100


@reads_from_replica
def get_node(*, scope: GraphScope, id: str) -> Vertex | None:
    """The node, document or passage with this `id`, with properties; None if missing or invisible.
    Former ids find the node they went into.
    """
    return resolve(access_filter(scope), [id], props=True).get(id)


@reads_from_replica
def find_nodes(
    *,
    scope: GraphScope,
    text: str,
    labels: Sequence[str] = (),
    kinds: Sequence[Kind] = ("node", "document"),
    limit: int = 10,
) -> tuple[Vertex, ...]:
    """Vertices whose name or id begins with or resembles `text`: exact matches first, then
    prefixes, then similar ones. With `labels`, only those with one of them.

    Raises InvalidInput.
    """
    _check_range(limit, MAX_FOUND, field="limit")
    _check_choice(kinds, KINDS, field="kinds")
    return search_vertices(
        access_filter(scope),
        text,
        form=normalize_name(text),
        labels=_checked_names(labels, field="labels"),
        kinds=kinds,
        limit=limit,
    )


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
) -> NeighbourPage:
    """Vertices related to `id`, by any or the named relations, in natural order.

    `grain`: whether documents or passages mention a node. `cursor` is `next` of the previous
    page. Raises NotFound and InvalidInput.
    """
    _check_range(limit, MAX_PAGE, field="limit")
    seen = access_filter(scope)
    vertex = _require_vertex(seen, id, props=True)
    rels = rel if not isinstance(rel, str) else [rel] if rel else []
    follow = _make_follow([vertex], rels, direction, grain)
    return neighbours_of(seen, vertex, follow, limit=limit, cursor=cursor)


@reads_from_replica
def traverse(
    *,
    scope: GraphScope,
    start: str,
    max_depth: int = 2,
    rels: Sequence[str] = (),
    direction: Direction = "both",
    grain: Grain = "document",
    limit: int = 200,
    props: bool = False,
) -> Traversal:
    """Vertices at most `max_depth` steps from `start`, nearest first, at most `limit`, including
    it.

    Raises NotFound and InvalidInput.
    """
    _check_range(max_depth, MAX_DEPTH, field="max_depth", least=0)
    _check_range(limit, MAX_REACHED, field="limit")
    seen = access_filter(scope)
    vertex = _require_vertex(seen, start, field="start")
    follow = _make_follow([vertex], rels, direction, grain)
    return traverse_from(seen, vertex, follow, max_depth=max_depth, limit=limit, props=props)


@reads_from_replica
def shortest_path(
    *,
    scope: GraphScope,
    source: str,
    target: str,
    max_depth: int = 6,
    rels: Sequence[str] = (),
    direction: Direction = "both",
    grain: Grain = "document",
) -> PathFound:
    """A path with as few steps as possible from `source` to `target`; deterministic.

    `direction`: `out` follows relations forwards, `in` backwards. Raises NotFound and
    InvalidInput.
    """
    _check_range(max_depth, MAX_DEPTH, field="max_depth", least=0)
    seen = access_filter(scope)
    first, last = (
        _require_vertex(seen, source, field="source"),
        _require_vertex(seen, target, field="target"),
    )
    follow = _make_follow([first, last], rels, direction, grain)
    return find_shortest_path(seen, first, last, follow, depth=max_depth)


@reads_from_replica
def subgraph(
    *,
    scope: GraphScope,
    ids: Sequence[str],
    hops: int = 1,
    cap: int = 200,
    rels: Sequence[str] = (),
    labels: Sequence[str] = (),
    grain: Grain = "document",
    props: bool = False,
) -> Subgraph:
    """Vertices at most `hops` steps from any of `ids`, at most `cap`, and all relations among
    them. With `labels`, only vertices with one of them, and `ids`.

    Raises NotFound where none of `ids` exists, and InvalidInput.
    """
    _check_range(hops, MAX_HOPS, field="hops", least=0)
    _check_range(cap, MAX_VERTICES, field="cap")
    asked = list(dict.fromkeys(ids))
    if len(asked) > cap:
        raise InvalidInput(
            f"{len(asked):,} ids, and room for {cap:,} vertices. Raise cap, or send fewer ids.",
            field="ids",
        )
    seen = access_filter(scope)
    found = resolve(seen, asked, props=props)
    if not found:
        raise NotFound("None of these is in the graph. Look for what you mean by its name.")
    starts = list(found.values())
    follow = _make_follow(starts, rels, "both", grain, _checked_names(labels, field="labels"))
    missing = [each for each in asked if each not in found]
    return subgraph_around(seen, starts, follow, hops=hops, cap=cap, props=props, missing=missing)


@reads_from_replica
def mentions_of(*, scope: GraphScope, id: str, limit: int = 20, cursor: str = "") -> MentionPage:
    """Passages that mention node `id`. Raises NotFound and InvalidInput."""
    _check_range(limit, MAX_PAGE, field="limit")
    seen = access_filter(scope)
    return mentions_of_node(seen, _require_vertex(seen, id, props=True), limit=limit, cursor=cursor)


@reads_from_replica
def graph_statistics(*, scope: GraphScope) -> GraphStatistics:
    """Statistics of the graph within the scope."""
    return compute_statistics(access_filter(scope))


def _require_vertex(
    seen: AccessFilter, node_id: str, *, field: str = "id", props: bool = False
) -> Vertex:
    vertex = resolve(seen, [node_id], props=props).get(node_id)
    if vertex is None:
        shown = node_id if len(node_id) <= 100 else f"{node_id[:100]}…"
        raise NotFound(f"There is no “{shown}” in the graph ({field}). Look for it by its name.")
    return vertex


def _make_follow(
    named: Sequence[Vertex],
    rels: Sequence[str],
    direction: Direction,
    grain: Grain,
    labels: tuple[str, ...] = (),
) -> Follow:
    """What to follow; requested passages count, whatever the grain."""
    _check_choice([direction], DIRECTIONS, field="direction")
    _check_choice([grain], GRAINS, field="grain")
    return Follow(
        rels=_checked_names(rels, field="rels"),
        direction=direction,
        grain=grain,
        passages=frozenset(vertex.pk for vertex in named if vertex.kind == "chunk"),
        labels=labels,
    )


def _checked_names(names: Sequence[str], *, field: str) -> tuple[str, ...]:
    if isinstance(names, str):
        names = [names]
    if len(names) > MAX_NAMES:
        raise InvalidInput(f"{field} has at most {MAX_NAMES} names.", field=field)
    # one that no row can have is followed by nothing
    return tuple(name.replace("\0", "\ufffd").encode(errors="replace").decode() for name in names)


def _check_range(value: int, most: int, *, field: str, least: int = 1) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{field} is from {least} to {most:,}.", field=field)


def _check_choice(values: Sequence[str], possible: Sequence[str], *, field: str) -> None:
    for value in values:
        if value not in possible:
            raise InvalidInput(
                f"There is no {field} “{value}”. Use {', '.join(possible)}.", field=field
            )


def export_graphml(
    *,
    scope: GraphScope,
    ids: Sequence[str] = (),
    hops: int = 1,
    cap: int = 1_000,
    rels: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Iterator[bytes]:
    """GraphML in parts: the subgraph around `ids`, or all visible nodes and documents with their
    relations.

    Node ids are ours; characters that XML cannot hold become Python escapes. `labels` and
    `props` are JSON. Raises NotFound and InvalidInput before the first part.
    """
    if not ids:
        return _graph_graphml(access_filter(scope), tuple(rels), frozenset(labels))
    found = subgraph(scope=scope, ids=ids, hops=hops, cap=cap, rels=rels, labels=labels, props=True)
    parts = (GRAPHML_HEAD, nodes_text(found.vertices), edges_text(found.links), GRAPHML_TAIL)
    return (part.encode() for part in parts)


def export_cytoscape(subgraph: Subgraph) -> dict[str, Any]:
    """A subgraph in the format of cytoscape.js, with `truncated`."""
    truncated = subgraph.truncated
    return {
        "elements": {
            "nodes": [
                {
                    "data": {
                        "id": vertex.id,
                        "name": vertex.name,
                        "labels": list(vertex.labels),
                        "kind": vertex.kind,
                        "degree": subgraph.degrees.get(vertex.id, 0),
                        "origin": vertex.origin,
                    }
                }
                for vertex in subgraph.vertices
            ],
            "edges": [
                {
                    "data": {
                        "id": json.dumps([link.source, link.rel, link.target], ensure_ascii=False),
                        "source": link.source,
                        "target": link.target,
                        "rel": link.rel,
                        "weight": link.weight,
                        "origin": link.origin,
                    }
                }
                for link in subgraph.links
            ],
        },
        "truncated": {
            "limit": truncated.limit,
            "hubs": list(truncated.hubs),
            "work": truncated.work,
        },
    }


def _graph_graphml(
    seen: AccessFilter, rels: tuple[str, ...], labels: frozenset[str]
) -> Iterator[bytes]:
    ids: dict[Ref, str] = {}
    yield GRAPHML_HEAD.encode()
    for vertices in all_vertices(seen):
        listed = [each for each in vertices if not labels or not labels.isdisjoint(each.labels)]
        ids |= {each.ref: each.id for each in listed}
        yield nodes_text(listed).encode()
    for links in all_links(seen, ids, rels):
        yield edges_text(links).encode()
    yield GRAPHML_TAIL.encode()
