"""The graph as tools of a chat model, answered in text. Begin with `TOOLS`.

The scope comes from the caller and is no argument of a tool: a model sees what its user may
see, and writes only where its user may.
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Any

from accounts.models import Workspace
from accounts.services import require_editor
from common.errors import NotFound
from common.text import count_heading, json_quoted, truncated
from common.tools import TEXT_SCHEMA, Tool, object_schema, tools_by_name
from graph import services
from graph.inputs import MAX_NAME_CHARACTERS, EdgeInput, NodeInput
from graph.node_ids import MAX_ID_CHARACTERS, MAX_REL_CHARACTERS
from graph.reading.results import Truncated
from graph.reading.steps import DIRECTIONS, Direction
from graph.reading.vertices import MAX_ID_CHARACTERS as MAX_TEXT
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope

MAX_RESULTS = 100
MAX_STEPS = 20
SHOWN_CHARACTERS = 200


def graph_find(*, scope: GraphScope, text: str, max_results: int = 10) -> str:
    """Nodes that match a name, as text."""
    vertices = services.find_nodes(scope=scope, text=text, limit=int(max_results))
    return _numbered_list(count_heading(len(vertices), "node(s)"), map(_describe, vertices))


def graph_neighbors(
    *,
    scope: GraphScope,
    id: str,
    rel: str = "",
    direction: Direction = "both",
    max_results: int = 20,
) -> str:
    """Neighbours of a node, as text."""
    try:
        page = services.neighbors(
            scope=scope, id=id, rel=rel, direction=direction, limit=int(max_results)
        )
    except NotFound as error:
        raise _not_found([id]) from error
    first = count_heading(page.total, f"neighbour(s) of {_describe(page.vertex)}")
    more = page.total - len(page.items)
    rest = [f"… and {more} more."] if more else []
    described = [
        f"{json_quoted(each.rel)} {'to' if each.outgoing else 'from'} {_describe(each.vertex)}"
        for each in page.items
    ]
    return "\n".join(
        [
            _numbered_list(first, described),
            *rest,
            *_truncation_notes(page.truncated),
        ]
    )


def graph_path(*, scope: GraphScope, source: str, target: str, max_steps: int = 6) -> str:
    """The shortest path between two nodes, as text."""
    try:
        path = services.shortest_path(
            scope=scope, source=source, target=target, max_depth=int(max_steps)
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
    return NotFound(f"Node not found: {names}. Look for its id with graph_find.")


#: Of each kind in one call.
MAX_ITEMS = 100


def graph_upsert(
    *,
    scope: GraphScope,
    nodes: Sequence[Mapping[str, Any]] = (),
    edges: Sequence[Mapping[str, Any]] = (),
) -> str:
    """Creates or changes nodes and edges, all or none. Raises Forbidden unless the
    user may edit.
    """
    if scope.user is not None:
        workspace = Workspace.objects.get(pk=scope.workspace_id)
        require_editor(user=scope.user, workspace=workspace)
    done = services.upsert_many(
        scope=scope,
        nodes=[NodeInput(**node) for node in nodes],
        edges=[EdgeInput(**edge) for edge in edges],
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


def _id_schema(meaning: str) -> dict[str, Any]:
    return {**TEXT_SCHEMA, "description": meaning}


def _count_schema(most: int, default: int, meaning: str) -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": most,
        "default": default,
        "description": meaning,
    }


_REL = {**TEXT_SCHEMA, "maxLength": MAX_REL_CHARACTERS}
_NODE = object_schema(
    "id",
    id={
        **TEXT_SCHEMA,
        "maxLength": MAX_ID_CHARACTERS,
        "description": "Its id, such as ent:person:ada lovelace.",
    },
    name={
        "type": "string",
        "maxLength": MAX_NAME_CHARACTERS,
        "description": "Its name as people read it.",
    },
    labels={"type": "array", "items": TEXT_SCHEMA, "description": "What it is, such as Person."},
    props={"type": "object", "description": "What else is known of it, by name."},
)
_EDGE = object_schema(
    "source rel target",
    source=_id_schema("Id of the node that it begins at."),
    rel={**_REL, "description": "What that one is or does, such as WORKS_AT."},
    target=_id_schema("Id of the node that it leads to."),
    props={"type": "object", "description": "What else is known of it, by name."},
)

_TOOLS = (
    Tool(
        "graph_find",
        "Find people, places, terms and documents in the knowledge graph by the beginning of their"
        " names, or something like it, to learn their ids.",
        object_schema(
            "text",
            text={**TEXT_SCHEMA, "maxLength": MAX_TEXT, "description": "A name, or its beginning."},
            max_results=_count_schema(MAX_RESULTS, 10, "How many nodes at most."),
        ),
        writes=False,
        run=graph_find,
    ),
    Tool(
        "graph_neighbors",
        "What is related to a node of the knowledge graph, and how: other nodes, and documents that"
        " mention it.",
        object_schema(
            "id",
            id=_id_schema("Id of a node, document or passage, as graph_find tells it."),
            rel={**_REL, "description": "Only by this relation, such as MENTIONS. Default: any."},
            direction={
                "enum": list(DIRECTIONS),
                "default": "both",
                "description": "out: relations that begin at it; in: those that lead to it.",
            },
            max_results=_count_schema(MAX_RESULTS, 20, "How many neighbours at most."),
        ),
        writes=False,
        run=graph_neighbors,
    ),
    Tool(
        "graph_path",
        "A shortest way between two nodes of the knowledge graph: how they are connected.",
        object_schema(
            "source target",
            source=_id_schema("Id of a node, document or passage."),
            target=_id_schema("Id of another one."),
            max_steps=_count_schema(MAX_STEPS, 6, "How many steps at most."),
        ),
        writes=False,
        run=graph_path,
    ),
    Tool(
        "graph_upsert",
        "Note in the knowledge graph what is known: make nodes and the relations between them, or"
        " change those that are there. All of it is written, or nothing.",
        object_schema(
            "",
            nodes={
                "type": "array",
                "items": _NODE,
                "maxItems": MAX_ITEMS,
                "description": "Nodes. What is left out of one stays as it is.",
            },
            edges={
                "type": "array",
                "items": _EDGE,
                "maxItems": MAX_ITEMS,
                "description": "Relations between nodes that are there, or among these.",
            },
        ),
        writes=True,
        run=graph_upsert,
    ),
)

#: In the order in which a model is shown them.
TOOLS = tools_by_name(_TOOLS)
