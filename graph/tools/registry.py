"""The tools by name, each with what a model reads of it."""

from collections.abc import Mapping
from typing import Any

from common.tools import TEXT, Tool, ToolAnswer, by_name, object_schema
from common.tools import call as call_tool
from graph.keys import MAX_ID_CHARACTERS, MAX_REL_CHARACTERS
from graph.limits import MAX_NAME_CHARACTERS
from graph.reading.arms import DIRECTIONS
from graph.reading.resolving import MAX_ID_CHARACTERS as MAX_TEXT
from graph.scopes import GraphScope
from graph.tools import reading, writing


def _id(meaning: str) -> dict[str, Any]:
    return {**TEXT, "description": meaning}


def _number(most: int, default: int, meaning: str) -> dict[str, Any]:
    return {
        "type": "integer",
        "minimum": 1,
        "maximum": most,
        "default": default,
        "description": meaning,
    }


_REL = {**TEXT, "maxLength": MAX_REL_CHARACTERS}
_NODE = object_schema(
    "id",
    id={
        **TEXT,
        "maxLength": MAX_ID_CHARACTERS,
        "description": "Its id, such as ent:person:ada lovelace.",
    },
    name={
        "type": "string",
        "maxLength": MAX_NAME_CHARACTERS,
        "description": "Its name as people read it.",
    },
    labels={"type": "array", "items": TEXT, "description": "What it is, such as Person."},
    props={"type": "object", "description": "What else is known of it, by name."},
)
_EDGE = object_schema(
    "source rel target",
    source=_id("Id of the node that it begins at."),
    rel={**_REL, "description": "What that one is or does, such as WORKS_AT."},
    target=_id("Id of the node that it leads to."),
    props={"type": "object", "description": "What else is known of it, by name."},
)

_TOOLS = (
    Tool(
        "graph_find",
        "Find people, places, terms and documents in the knowledge graph by the beginning of their"
        " names, or something like it, to learn their ids.",
        object_schema(
            "text",
            text={**TEXT, "maxLength": MAX_TEXT, "description": "A name, or its beginning."},
            max_results=_number(reading.MAX_RESULTS, 10, "How many nodes at most."),
        ),
        writes=False,
        run=reading.graph_find,
    ),
    Tool(
        "graph_neighbors",
        "What is related to a node of the knowledge graph, and how: other nodes, and documents that"
        " mention it.",
        object_schema(
            "id",
            id=_id("Id of a node, document or passage, as graph_find tells it."),
            rel={**_REL, "description": "Only by this relation, such as MENTIONS. Default: any."},
            direction={
                "enum": list(DIRECTIONS),
                "default": "both",
                "description": "out: relations that begin at it; in: those that lead to it.",
            },
            max_results=_number(reading.MAX_RESULTS, 20, "How many neighbours at most."),
        ),
        writes=False,
        run=reading.graph_neighbors,
    ),
    Tool(
        "graph_path",
        "A shortest way between two nodes of the knowledge graph: how they are connected.",
        object_schema(
            "source target",
            source=_id("Id of a node, document or passage."),
            target=_id("Id of another one."),
            max_steps=_number(reading.MAX_STEPS, 6, "How many steps at most."),
        ),
        writes=False,
        run=reading.graph_path,
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
                "maxItems": writing.MAX_ITEMS,
                "description": "Nodes. What is left out of one stays as it is.",
            },
            edges={
                "type": "array",
                "items": _EDGE,
                "maxItems": writing.MAX_ITEMS,
                "description": "Relations between nodes that are there, or among these.",
            },
        ),
        writes=True,
        run=writing.graph_upsert,
    ),
)

#: In the order in which a model is shown them.
TOOLS = by_name(_TOOLS)


def call(name: str, arguments: Mapping[str, Any], *, scope: GraphScope) -> ToolAnswer:
    """Run a tool with what a model sent: see `common.tools.call`."""
    return call_tool(TOOLS, name, arguments, scope=scope)
