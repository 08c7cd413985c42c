"""The graph as tools of a chat model, answered in text. Begin with `TOOLS`.

The scope comes from the caller and is no argument of a tool: a model sees what its user may
see, and writes only where its user may.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Annotated

from django.utils.translation import gettext
from pydantic import Field

from accounts.models import Workspace
from accounts.services import require_editor
from common.errors import NotFound
from common.text import count_heading, json_quoted, truncated
from common.tools import between, nonempty, tools_by_name
from graph import services
from graph.inputs import EdgeInput, NodeInput
from graph.node_ids import MAX_REL_CHARACTERS
from graph.options import StepOptions, WalkOptions
from graph.reading.results import Truncated
from graph.reading.vertices import MAX_ID_CHARACTERS as MAX_TEXT
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope
from graph.services.json_lines import make_item

MAX_RESULTS = 100
MAX_STEPS = 20
SHOWN_CHARACTERS = 200


def graph_find(
    *,
    scope: GraphScope,
    text: Annotated[str, nonempty("A name, or its beginning.", most=MAX_TEXT)],
    k: Annotated[int, between(1, MAX_RESULTS, "How many nodes at most.")] = 10,
) -> str:
    """Find people, places, terms and documents in the knowledge graph by the beginning of their
    names, or something like it, to learn their ids."""
    vertices = services.find_nodes(scope=scope, text=text, limit=int(k))
    return _numbered_list(count_heading(len(vertices), "node(s)"), map(_describe, vertices))


def graph_neighbors(
    *,
    scope: GraphScope,
    id: Annotated[str, nonempty("Id of a node, document or passage, as graph_find tells it.")],
    rel: Annotated[
        str,
        nonempty("Only by this relation, such as MENTIONS. Default: any.", most=MAX_REL_CHARACTERS),
    ] = "",
    options: StepOptions,
    k: Annotated[int, between(1, MAX_RESULTS, "How many neighbors at most.")] = 20,
) -> str:
    """What is related to a node of the knowledge graph, and how: other nodes, and documents that
    mention it."""
    try:
        page = services.neighbors(scope=scope, id=id, rel=rel, limit=int(k), **options.model_dump())
    except NotFound as error:
        raise _not_found([id]) from error
    first = count_heading(page.total, f"neighbour(s) of {_describe(page.vertex)}")
    more = page.total - len(page.items)
    rest = [f"… and {more} more."] if more else []
    described = [
        f"{json_quoted(each.rel)} {'to' if each.outgoing else 'from'} {_describe(each.vertex)}"
        for each in page.items
    ]
    return "\n".join([_numbered_list(first, described), *rest, *_truncation_notes(page.truncated)])


def graph_path(
    *,
    scope: GraphScope,
    source: Annotated[str, nonempty("Id of a node, document or passage.")],
    target: Annotated[str, nonempty("Id of another one.")],
    max_steps: Annotated[int, between(1, MAX_STEPS, "How many steps at most.")] = 6,
    options: WalkOptions,
) -> str:
    """A shortest way between two nodes of the knowledge graph: how they are connected."""
    try:
        path = services.shortest_path(
            scope=scope,
            source=source,
            target=target,
            max_depth=int(max_steps),
            rels=options.rel,
            **options.model_dump(exclude={"rel"}),
        )
    except NotFound as error:
        ends = dict.fromkeys([source, target])
        missing = [id for id in ends if services.get_node(scope=scope, id=id) is None]
        raise _not_found(missing) from error
    if not path.found:
        nothing = f"Found no way of at most {path.max_depth} step(s)."
        return "\n".join([nothing, *_truncation_notes(path.truncated)])
    lines = [f"Found a way of {path.length} step(s):", _describe(path.vertices[0])]
    for link, (before, vertex) in zip(path.links, pairwise(path.vertices), strict=True):
        direction = "to" if link.source == before.id else "from"
        lines.append(f"   {json_quoted(link.rel)} {direction} {_describe(vertex)}")
    return "\n".join(lines)


def _numbered_list(first: str, lines: Iterable[str]) -> str:
    return "\n".join([first, *(f"{place}. {line}" for place, line in enumerate(lines, 1))])


def _describe(vertex: Vertex) -> str:
    labels = ", ".join(map(json_quoted, vertex.labels))
    name = json_quoted(truncated(vertex.name, SHOWN_CHARACTERS))
    return (
        f"{name} ({labels}), id {json_quoted(vertex.id)}"
        if labels
        else f"{name}, id {json_quoted(vertex.id)}"
    )


def _truncation_notes(truncated: Truncated) -> list[str]:
    """Notes on limits, so that a model does not take them for absence."""
    if truncated.work:
        return ["There was too much to look at: the search was given up."]
    if truncated.hubs:
        return ["Some have so many neighbours that only the weightiest were looked at."]
    return []


def _not_found(ids: Sequence[str]) -> NotFound:
    """A missing node is an answer, not an error."""
    names = ", ".join(json_quoted(truncated(id, SHOWN_CHARACTERS)) for id in ids)
    return NotFound(
        gettext("Node not found: {names}. Look for its id with graph_find.").format(names=names)
    )


#: Of each kind in one call.
MAX_ITEMS = 100


def graph_upsert(
    *,
    scope: GraphScope,
    nodes: Annotated[
        Sequence[NodeInput],
        Field(
            max_length=MAX_ITEMS,
            description="Nodes. What is left out of one stays as it is.",
        ),
    ] = (),
    edges: Annotated[
        Sequence[EdgeInput],
        Field(
            max_length=MAX_ITEMS,
            description="Relations between nodes that are there, or among these.",
        ),
    ] = (),
) -> str:
    """Note in the knowledge graph what is known: make nodes and the relations between them, or
    change those that are there. All of it is written, or nothing."""
    if scope.user is not None:
        workspace = Workspace.objects.get(pk=scope.workspace_id)
        require_editor(user=scope.user, workspace=workspace)
    done = services.upsert_many(
        scope=scope,
        nodes=[make_item(node, NodeInput) for node in nodes],
        edges=[make_item(edge, EdgeInput) for edge in edges],
    )
    counts = (
        (done.nodes_created, "node(s) made"),
        (done.nodes_updated, "node(s) changed"),
        (done.edges_created, "edge(s) made"),
        (done.edges_updated, "edge(s) changed"),
    )
    summary = ", ".join(f"{number} {what}" for number, what in counts if number)
    lines = [f"{summary}." if summary else "Everything was there already."]
    if done.taken:
        names = ", ".join(map(json_quoted, done.taken))
        lines.append(f"These names mean another node already: {names}.")
    return "\n".join(lines)


TOOLS = tools_by_name(
    "graph",
    (graph_find, graph_neighbors, graph_path, graph_upsert),
    writing={graph_upsert},
)
