"""Reading the graph, as one scope may see it. Nothing here changes anything."""

from collections.abc import Sequence

from graph.reading.results import (
    GraphStatistics,
    MentionPage,
    NeighbourPage,
    PathFound,
    Subgraph,
    Traversal,
)
from graph.reading.steps import Direction, Grain
from graph.reading.vertices import Kind, Vertex
from graph.scopes import GraphScope

MAX_DEPTH = 100
MAX_LIMIT = 10_000
MAX_PAGE = 1_000
MAX_CAP = 5_000


def get_node(*, scope: GraphScope, id: str) -> Vertex | None:
    """The node, document or passage called `id`, with its properties; None where there is none, or
    none for this scope. The former id of a merged node finds the one it went into."""
    raise NotImplementedError


def find_nodes(
    *,
    scope: GraphScope,
    text: str,
    labels: Sequence[str] = (),
    kinds: Sequence[Kind] = ("node", "document"),
    limit: int = 10,
) -> tuple[Vertex, ...]:
    """What `text` may be the beginning, or a misspelling, of the name or id of: those first that
    begin so, then those that are like it. With `labels` those that have one of them."""
    raise NotImplementedError


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
    raise NotImplementedError


def traverse(
    *,
    scope: GraphScope,
    start: str,
    max_depth: int = 2,
    rels: Sequence[str] = (),
    direction: Direction = "both",
    grain: Grain = "document",
    limit: int = 1_000,
    props: bool = False,
) -> Traversal:
    """What is at most `max_depth` steps from `start`, the nearest first, at most `limit` of it.
    Raises NotFound and InvalidInput."""
    raise NotImplementedError


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
    raise NotImplementedError


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
    raise NotImplementedError


def mentions_of(*, scope: GraphScope, id: str, limit: int = 20, cursor: str = "") -> MentionPage:
    """The passages that speak of node `id`. Raises NotFound and InvalidInput."""
    raise NotImplementedError


def graph_statistics(*, scope: GraphScope) -> GraphStatistics:
    """How large the graph is, what it is made of, and what is best connected."""
    raise NotImplementedError
