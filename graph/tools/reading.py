"""Tools that look at the graph: answers in text."""

from collections.abc import Iterable, Sequence

from common.errors import NotFound
from common.wording import found, quoted, shortened
from graph import services
from graph.reading.arms import Direction
from graph.reading.results import Link, Neighbour, Path, Truncated
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope

MAX_RESULTS = 100
MAX_STEPS = 20
SHOWN_CHARACTERS = 200


def graph_find(*, scope: GraphScope, text: str, max_results: int = 10) -> str:
    """What may be meant by a name."""
    vertices = services.find_nodes(scope=scope, text=text, limit=int(max_results))
    return _listed(found(len(vertices), "node(s)"), map(_told, vertices))


def graph_neighbors(
    *,
    scope: GraphScope,
    id: str,
    rel: str = "",
    direction: Direction = "both",
    max_results: int = 20,
) -> str:
    """What is one step away."""
    try:
        page = services.neighbors(
            scope=scope, id=id, rel=rel, direction=direction, limit=int(max_results)
        )
    except NotFound as error:
        raise _not_found([id]) from error
    first = found(page.total, f"neighbour(s) of {_told(page.vertex)}")
    more = page.total - len(page.items)
    rest = [f"… and {more} more."] if more else []
    return "\n".join([_listed(first, map(_beside, page.items)), *rest, *_cut(page.truncated)])


def graph_path(*, scope: GraphScope, source: str, target: str, max_steps: int = 6) -> str:
    """How two are connected."""
    try:
        way = services.shortest_path(
            scope=scope, source=source, target=target, max_depth=int(max_steps)
        )
    except NotFound as error:
        ends = dict.fromkeys([source, target])
        missing = [id for id in ends if services.get_node(scope=scope, id=id) is None]
        raise _not_found(missing) from error
    if way.path is None:
        nothing = f"Found no way of at most {way.max_depth} step(s)."
        return "\n".join([nothing, *_cut(way.truncated)])
    return "\n".join([f"Found a way of {way.path.length} step(s):", *_steps(way.path)])


def _listed(first: str, lines: Iterable[str]) -> str:
    return "\n".join([first, *(f"{place}. {line}" for place, line in enumerate(lines, 1))])


def _told(vertex: Vertex) -> str:
    labels = ", ".join(map(quoted, vertex.labels))
    name = quoted(shortened(vertex.name, SHOWN_CHARACTERS))
    return (
        f"{name} ({labels}), id {quoted(vertex.id)}"
        if labels
        else f"{name}, id {quoted(vertex.id)}"
    )


def _beside(neighbour: Neighbour) -> str:
    way = "to" if neighbour.outgoing else "from"
    return f"{quoted(neighbour.rel)} {way} {_told(neighbour.vertex)}"


def _steps(path: Path) -> Iterable[str]:
    yield _told(path.vertices[0])
    for link, before, vertex in zip(path.links, path.vertices, path.vertices[1:], strict=False):
        yield f"   {_step(link, before)} {_told(vertex)}"


def _step(link: Link, before: Vertex) -> str:
    return f"{quoted(link.rel)} {'to' if link.source == before.id else 'from'}"


def _cut(truncated: Truncated) -> list[str]:
    """A model must not take for nothing what was only not looked at."""
    if truncated.work:
        return ["There was too much to look at: the search was given up."]
    if truncated.hubs:
        return ["Some have so many neighbours that only the weightiest were looked at."]
    return []


def _not_found(ids: Sequence[str]) -> NotFound:
    names = ", ".join(quoted(shortened(id, SHOWN_CHARACTERS)) for id in ids)
    return NotFound(f"Node not found: {names}. Look for its id with graph_find.")
