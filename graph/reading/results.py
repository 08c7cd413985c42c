"""What reading the graph answers with."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from graph.reading.vertices import Vertex


@dataclass(frozen=True, slots=True)
class Truncated:
    """What was left out, and why. False where nothing was.

    `limit`: there is more than was asked for. `hubs`: ids of those of whose neighbours only some
    were looked at, those of the largest weight. `work`: so much was to be looked at that it was
    given up.
    """

    limit: bool = False
    hubs: tuple[str, ...] = ()
    work: bool = False

    def __bool__(self) -> bool:
        return self.limit or self.work or bool(self.hubs)


@dataclass(frozen=True, slots=True)
class Link:
    """A relation between two vertices, by their ids. `origin` is `derived` where no row says it."""

    source: str
    rel: str
    target: str
    weight: float = 1.0
    origin: str = "given"


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A vertex beside another, and how they are related. `outgoing`: that is how it stands to this
    one, and not this one to that. `props` are those of the edge, None where a page has too many."""

    vertex: Vertex
    rel: str
    outgoing: bool
    weight: float = 1.0
    origin: str = "given"
    props: Mapping[str, Any] | None = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class NeighbourPage:
    """Neighbours of `vertex` in natural order (`:2` before `:10`). `total` is how many there are on
    all pages, `next` the cursor of the page behind this one or empty."""

    vertex: Vertex
    items: tuple[Neighbour, ...]
    total: int
    next: str = ""
    truncated: Truncated = field(default_factory=Truncated)


@dataclass(frozen=True, slots=True)
class Reached:
    """A vertex `depth` steps from the start; the last one leads from the vertex called `parent` by
    `rel`, along it if `outgoing`. The start itself has depth 0 and no parent."""

    vertex: Vertex
    depth: int
    parent: str = ""
    rel: str = ""
    outgoing: bool = True


@dataclass(frozen=True, slots=True)
class Traversal:
    """What is reached from a start, the nearest first, the start among it."""

    reached: tuple[Reached, ...]
    truncated: Truncated = field(default_factory=Truncated)


@dataclass(frozen=True, slots=True)
class Path:
    """A way through the graph: one link fewer than vertices. Links tell their own direction."""

    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...] = ()

    @property
    def length(self) -> int:
        """How many steps it takes."""
        return len(self.links)


@dataclass(frozen=True, slots=True)
class PathFound:
    """A shortest path, or None: there is none of at most `max_depth` steps, unless `truncated`
    says that the search was given up before."""

    path: Path | None
    max_depth: int
    truncated: Truncated = field(default_factory=Truncated)


@dataclass(frozen=True, slots=True)
class Subgraph:
    """Vertices around some, and every relation among them that the scope may see.

    Those that were asked for come first, then the most relevant. `degrees` tells by id how many of
    these relations a vertex has; of one that was asked for, how many there are in the whole graph
    that might have been drawn, or at least so many where it is among the `truncated` hubs.
    `missing` are ids that are not there, or not for this scope.
    """

    vertices: tuple[Vertex, ...]
    links: tuple[Link, ...]
    degrees: Mapping[str, int]
    missing: tuple[str, ...] = ()
    truncated: Truncated = field(default_factory=Truncated)


@dataclass(frozen=True, slots=True)
class MentionFound:
    """A passage that speaks of a node. `kind` is one of `graph.extraction.found.KINDS`; `start` and
    `end` are offsets into the passage's text, 0, 0 where only the title or a heading names it.
    `snippet` is the text around them, beginning at `snippet_start`."""

    passage: Vertex
    document: Vertex
    kind: str
    count: int
    start: int
    end: int
    snippet: str
    snippet_start: int = 0


@dataclass(frozen=True, slots=True)
class MentionPage:
    """Passages that speak of `vertex`, in the order of documents and within them. `next` is the
    cursor of the page behind this one or empty."""

    vertex: Vertex
    items: tuple[MentionFound, ...]
    next: str = ""


@dataclass(frozen=True, slots=True)
class Connected:
    """A node with the number of its relations."""

    vertex: Vertex
    degree: int


@dataclass(frozen=True, slots=True)
class GraphStatistics:
    """How large a graph is, as the scope sees it. `nodes`, `edges` and `documents` count rows;
    `labels` and `rels` the most frequent ones. Where `sampled` is True there was too much to look
    at, and the numbers are estimates."""

    nodes: int
    edges: int
    documents: int
    mentions: int
    origins: Mapping[str, int]
    labels: Mapping[str, int]
    rels: Mapping[str, int]
    best_connected: tuple[Connected, ...]
    sampled: bool = False
