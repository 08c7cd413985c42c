"""Results of reading the graph: pages, paths, subgraphs, statistics."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Generic, NamedTuple, TypeVar

from graph.reading.vertices import Vertex

ItemT = TypeVar("ItemT")


@dataclass(frozen=True, slots=True)
class Truncated:
    """What was left out, and why; falsy if nothing."""

    limit: Annotated[bool, "There is more than was asked for."] = False
    hubs: Annotated[
        tuple[str, ...],
        "Ids of nodes with so many neighbors that only those of the largest weight were looked at.",
    ] = ()
    work: Annotated[bool, "The search was stopped because there was too much to examine."] = False

    def __bool__(self) -> bool:
        return self.limit or self.work or bool(self.hubs)


@dataclass(frozen=True, slots=True)
class Link:
    """A relation between two vertices, by their ids. `origin` is `derived` without a row; `props`
    is None unless requested.
    """

    source: str
    rel: str
    target: str
    weight: float = 1.0
    origin: str = "given"
    props: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[ItemT]):
    """A page of what was found for `vertex`. `total` is over all pages, where it is counted;
    `next` the cursor of the next page, or empty.
    """

    vertex: Vertex
    items: tuple[ItemT, ...]
    next: str = ""
    total: int = 0
    truncated: Truncated = field(default_factory=Truncated)


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A vertex related to another; `outgoing`: the relation leads to it. `props` are
    the edge's, None beyond the page's limit.
    """

    vertex: Vertex
    rel: str
    outgoing: bool
    weight: float = 1.0
    origin: str = "given"
    props: Mapping[str, Any] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reached:
    """A vertex `depth` steps from the start; the last step is `rel` from `parent`, along it if
    `outgoing`. The start has depth 0 and no last step.
    """

    vertex: Vertex
    depth: int
    parent: str | None = None
    rel: str | None = None
    outgoing: bool = True


@dataclass(frozen=True, slots=True)
class MentionFound:
    """A mention of a node in a passage. `kind` is one of `KINDS`."""

    passage: Vertex
    document: Vertex
    kind: str
    count: Annotated[int, "How often."]
    start: Annotated[int, "Offset in the passage of the first one."]
    end: Annotated[int, "0 like `start` where only the title or a heading says it."]
    snippet: Annotated[str, "The text around it."]
    snippet_start: Annotated[int, "Offset of the snippet in the passage."] = 0


@dataclass(frozen=True, slots=True)
class Path:
    """A shortest path: one link fewer than vertices. Links have their own direction. Without
    vertices there is none of at most `max_depth` steps, unless `truncated` says the search was
    given up.
    """

    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    max_depth: int
    truncated: Truncated = field(default_factory=Truncated)

    @property
    def found(self) -> bool:
        """Whether there is a path."""
        return bool(self.vertices)

    @property
    def length(self) -> int | None:
        """Number of steps; None without a path."""
        return len(self.links) if self.found else None


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Vertices around some, and all visible relations among them.

    Requested ones come first, then the most relevant. `degrees` by id: number of these
    relations; for requested ones, of all that could be drawn, a lower bound for `truncated`
    hubs. `missing` are ids not found or not visible.
    """

    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    degrees: Mapping[str, int]
    missing: tuple[str, ...] = ()
    truncated: Truncated = field(default_factory=Truncated)


class Connected(NamedTuple):
    """A node with the number of its relations."""

    vertex: Vertex
    degree: Annotated[int, "How many."]


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """Size of a graph, as the scope sees it."""

    nodes: Annotated[int, "Besides documents and passages."]
    edges: Annotated[int, "Without derived relations."]
    documents: int
    mentions: Annotated[int, "Pairs of a passage and a node."]
    origins: Annotated[Mapping[str, int], "Of nodes."]
    labels: Annotated[Mapping[str, int], "The most frequent ones of nodes."]
    rels: Annotated[Mapping[str, int], "The most frequent ones of edges."]
    best_connected: tuple[Connected, ...]
    sampled: Annotated[bool, "There was too much to count: the numbers are estimates."] = False
