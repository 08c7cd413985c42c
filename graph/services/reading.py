"""Reading the graph, as one scope may see it. Nothing here changes anything."""

from collections.abc import Sequence

from common.errors import InvalidInput, NotFound
from common.replicas import reads_from_replica
from graph.extraction.forms import form
from graph.reading.arms import DIRECTIONS, GRAINS, Direction, Grain
from graph.reading.mentions import mentions_of_node
from graph.reading.neighbours import neighbours_of
from graph.reading.paths import shortest
from graph.reading.resolving import resolve
from graph.reading.results import (
    GraphStatistics,
    MentionPage,
    NeighbourPage,
    PathFound,
    Subgraph,
    Traversal,
)
from graph.reading.search import find
from graph.reading.statistics import statistics
from graph.reading.steps import Follow
from graph.reading.subgraph import subgraph_around
from graph.reading.traversal import traverse_from
from graph.reading.vertices import KINDS, Kind, Vertex
from graph.scopes import GraphScope, Sight, sight

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
    """The node, document or passage called `id`, with its properties; None where there is none, or
    none for this scope. The former id of a merged node finds the one it went into."""
    return resolve(sight(scope), [id], props=True).get(id)


@reads_from_replica
def find_nodes(
    *,
    scope: GraphScope,
    text: str,
    labels: Sequence[str] = (),
    kinds: Sequence[Kind] = ("node", "document"),
    limit: int = 10,
) -> tuple[Vertex, ...]:
    """What `text` may be the beginning, or a misspelling, of the name or id of: what is called so
    comes first, then what begins so, then what is like it. With `labels` only what has one of them.

    Raises InvalidInput.
    """
    _within(limit, MAX_FOUND, field="limit")
    _among(kinds, KINDS, field="kinds")
    return find(
        sight(scope),
        text,
        form=form(text),
        labels=_names(labels, field="labels"),
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
    """What is related to `id`, by any relation or those named, in natural order.

    `grain` says whether what mentions a node are documents, or passages. `cursor` is the `next` of
    the page before. Raises NotFound and InvalidInput.
    """
    _within(limit, MAX_PAGE, field="limit")
    seen = sight(scope)
    vertex = _there(seen, id, props=True)
    rels = rel if not isinstance(rel, str) else [rel] if rel else []
    follow = _follow([vertex], rels, direction, grain)
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
    """What is at most `max_depth` steps from `start`, the nearest first, at most `limit` of it,
    `start` itself among it. With `props` each comes with its properties.

    Raises NotFound and InvalidInput.
    """
    _within(max_depth, MAX_DEPTH, field="max_depth", least=0)
    _within(limit, MAX_REACHED, field="limit")
    seen = sight(scope)
    vertex = _there(seen, start, field="start")
    follow = _follow([vertex], rels, direction, grain)
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
    """A way of as few steps as possible from `source` to `target`, the same one each time.

    `direction` `out` follows relations from their source to their target, `in` the other way.
    Raises NotFound and InvalidInput.
    """
    _within(max_depth, MAX_DEPTH, field="max_depth", least=0)
    seen = sight(scope)
    first, last = _there(seen, source, field="source"), _there(seen, target, field="target")
    follow = _follow([first, last], rels, direction, grain)
    return shortest(seen, first, last, follow, depth=max_depth)


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
    """What is at most `hops` steps from any of `ids`, at most `cap` vertices, and all relations
    among them. With `labels` only vertices that have one of them, and `ids`.

    Raises NotFound where none of `ids` is there, and InvalidInput.
    """
    _within(hops, MAX_HOPS, field="hops", least=0)
    _within(cap, MAX_VERTICES, field="cap")
    asked = list(dict.fromkeys(ids))
    if len(asked) > cap:
        raise InvalidInput(
            f"{len(asked):,} ids, and room for {cap:,} vertices. Raise cap, or send fewer ids.",
            field="ids",
        )
    seen = sight(scope)
    found = resolve(seen, asked, props=props)
    if not found:
        raise NotFound("None of these is in the graph. Look for what you mean by its name.")
    starts = list(found.values())
    follow = _follow(starts, rels, "both", grain, _names(labels, field="labels"))
    missing = [each for each in asked if each not in found]
    return subgraph_around(seen, starts, follow, hops=hops, cap=cap, props=props, missing=missing)


@reads_from_replica
def mentions_of(*, scope: GraphScope, id: str, limit: int = 20, cursor: str = "") -> MentionPage:
    """The passages that speak of node `id`. Raises NotFound and InvalidInput."""
    _within(limit, MAX_PAGE, field="limit")
    seen = sight(scope)
    return mentions_of_node(seen, _there(seen, id, props=True), limit=limit, cursor=cursor)


@reads_from_replica
def graph_statistics(*, scope: GraphScope) -> GraphStatistics:
    """How large the graph is, what it is made of, and what is best connected."""
    return statistics(sight(scope))


def _there(seen: Sight, node_id: str, *, field: str = "id", props: bool = False) -> Vertex:
    vertex = resolve(seen, [node_id], props=props).get(node_id)
    if vertex is None:
        shown = node_id if len(node_id) <= 100 else f"{node_id[:100]}…"
        raise NotFound(f"There is no “{shown}” in the graph ({field}). Look for it by its name.")
    return vertex


def _follow(
    named: Sequence[Vertex],
    rels: Sequence[str],
    direction: Direction,
    grain: Grain,
    labels: tuple[str, ...] = (),
) -> Follow:
    """Passages that were asked for by name count, whatever the grain."""
    _among([direction], DIRECTIONS, field="direction")
    _among([grain], GRAINS, field="grain")
    return Follow(
        rels=_names(rels, field="rels"),
        direction=direction,
        grain=grain,
        passages=frozenset(vertex.pk for vertex in named if vertex.kind == "chunk"),
        labels=labels,
    )


def _names(names: Sequence[str], *, field: str) -> tuple[str, ...]:
    if isinstance(names, str):
        names = [names]
    if len(names) > MAX_NAMES:
        raise InvalidInput(f"{field} has at most {MAX_NAMES} names.", field=field)
    # one that no row can have is followed by nothing
    return tuple(name.replace("\0", "\ufffd").encode(errors="replace").decode() for name in names)


def _within(value: int, most: int, *, field: str, least: int = 1) -> None:
    if not least <= value <= most:
        raise InvalidInput(f"{field} is from {least} to {most:,}.", field=field)


def _among(values: Sequence[str], possible: Sequence[str], *, field: str) -> None:
    for value in values:
        if value not in possible:
            raise InvalidInput(
                f"There is no {field} “{value}”. Use {', '.join(possible)}.", field=field
            )
