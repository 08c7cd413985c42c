"""All tools by name with their JSON Schemas, which caller may use which, and how to call one.
Begin with `TOOLS`, `tools_for` and `call`.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from accounts.audit import Channel, acting, current_actor
from accounts.services import can_edit
from common import bounded_json
from common.errors import InvalidInput, NotFound
from common.fusion_options import DEPTHS, METHODS, RRF_KS
from common.rls import workspace_context
from common.tools import TEXT_SCHEMA, Tool, ToolAnswer, object_schema, tools_by_name
from common.tools import run_tool as call_tool
from graph.scopes import graph_scope
from graph.tools import TOOLS as OF_GRAPH
from memory.tools import TOOLS as OF_MEMORY
from rag.context import RagContext
from rag.tools import document_tools
from search.filters.tree import MAX_CHARACTERS as MAX_FILTER_CHARACTERS
from search.query import MAX_QUERY_CHARACTERS

#: Name of each memory tool here → in `memory.tools`.
MEMORY_NAMES = {
    "memory_search": "search_memory",
    "remember": "store_memory",
    "archive_turn": "archive_turn",
    "clear_memory": "clear_memory",
    "set_fact": "set_fact",
    "get_fact": "get_fact",
    "has_fact": "has_fact",
    "get_all_facts": "get_all_facts",
    "clear_fact": "clear_fact",
    "history": "history",
}
GRAPH_NAMES = ("graph_find", "graph_neighbors", "graph_path", "graph_upsert")


def _run_in_memory(run: Callable[..., str], /, *, scope: RagContext, **arguments: Any) -> str:
    return run(scope=scope.memory_scope, **arguments)


def _run_in_graph(tool: Tool, /, *, scope: RagContext, **arguments: Any) -> str:
    if tool.writes:
        scope.require("write")
        # Not `scope.graph_scope`: a key may have the right to write and none to read.
        return tool.run(scope=graph_scope(user=scope.user, workspace=scope.workspace), **arguments)
    if scope.filter:
        raise InvalidInput(
            "This conversation is narrowed by a filter of documents, which the graph cannot follow."
            " Use hybrid_query."
        )
    return tool.run(scope=scope.graph_scope, **arguments)


MEMORY_TOOLS = tuple(
    replace(OF_MEMORY[there], name=name, run=partial(_run_in_memory, OF_MEMORY[there].run))
    for name, there in MEMORY_NAMES.items()
)
GRAPH_TOOLS: tuple[Tool, ...] = tuple(
    replace(OF_GRAPH[name], run=partial(_run_in_graph, OF_GRAPH[name])) for name in GRAPH_NAMES
)


def required_scope(tool: Tool) -> str:
    """The scope an API key needs for the tool."""
    if tool.name in MEMORY_NAMES:
        return "memory"
    return "write" if tool.writes else "read"


def _needs_editor(tool: Tool) -> bool:
    return tool.writes and tool.name not in MEMORY_NAMES


MAX_ARGUMENTS_CHARACTERS = 1_000_000
MAX_ID_CHARACTERS = 1024
MAX_OFFSET = 1_000_000_000
MAX_VECTOR_NUMBERS = 16_000

_COLLECTION = {
    "type": "string",
    "maxLength": 63,
    "description": "Slug of a collection, as list_collections tells it. Default: all.",
}
_ID = {**TEXT_SCHEMA, "maxLength": MAX_ID_CHARACTERS}
_SEARCH_PARAMETERS = {
    "query": {
        **TEXT_SCHEMA,
        "maxLength": MAX_QUERY_CHARACTERS,
        "description": "A question, or words that the passages hold.",
    },
    "top_k": {
        "type": "integer",
        "minimum": 1,
        "maximum": document_tools.MAX_RESULTS,
        "default": 5,
        "description": "How many passages at most.",
    },
    "filter": {
        "type": ["object", "string"],
        "maxLength": MAX_FILTER_CHARACTERS,
        "description": "What documents must be like, such as"
        ' {"year": {"$gte": 2020}, "language": "de"}, by their metadata. Default: any.',
    },
    "collection": _COLLECTION,
}

_CONTENT = {**TEXT_SCHEMA, "maxLength": document_tools.MAX_CONTENT_CHARACTERS}
_DOCUMENT: dict[str, dict[str, Any]] = {
    "id": {**_ID, "description": "The id that it gets, such as notes/2026-05-01."},
    "content": {**_CONTENT, "description": "Its text."},
    "metadata": {"type": "object", "description": "What else is known of it, by name."},
    "title": {"type": "string", "maxLength": 500, "description": "Its title."},
}
_TARGET_COLLECTION = {
    **_COLLECTION,
    "description": "Slug of the collection. Needed where there are several.",
}
_WEIGHT = {"type": "number", "minimum": 0, "maximum": 1}

_DOCUMENT_TOOLS = (
    Tool(
        "similarity_search",
        "Find passages of the user's documents that mean what the query means. Each is shown with"
        " the number [n] by which to cite it.",
        object_schema("query", **_SEARCH_PARAMETERS),
        writes=False,
        run=document_tools.similarity_search,
    ),
    Tool(
        "hybrid_query",
        "Find passages of the user's documents by words and by meaning: better than"
        " similarity_search for names, codes and exact terms. Each is shown with the number [n] by"
        " which to cite it.",
        object_schema(
            "query",
            **_SEARCH_PARAMETERS,
            mode={
                "enum": ["hybrid", "graph"],
                "default": "hybrid",
                "description": "graph: also passages that name what the best ones name, for"
                " questions whose answer lies in several documents.",
            },
            fusion={
                "enum": list(METHODS),
                "description": "How words and meaning are joined. Default: as the site does.",
            },
            rrf_k={
                "type": "integer",
                "minimum": RRF_KS[0],
                "maximum": RRF_KS[-1],
                "description": "The constant of rrf.",
            },
            alpha={**_WEIGHT, "description": "What meaning counts for, instead."},
            beta={**_WEIGHT, "description": "What words count for, instead."},
            depth={
                "type": "integer",
                "minimum": DEPTHS[0],
                "maximum": DEPTHS[-1],
                "description": "How many candidates words and meaning list each.",
            },
            rerank={
                "type": "boolean",
                "description": "Whether a model reads the best again. Default: if there is one.",
            },
        ),
        writes=False,
        run=document_tools.hybrid_query,
    ),
    Tool(
        "search_words",
        "Find passages of the user's documents that hold the words of the query, ranked by BM25."
        " Each is shown with the number [n] by which to cite it.",
        object_schema("query", **_SEARCH_PARAMETERS),
        writes=False,
        run=document_tools.search_words,
    ),
    Tool(
        "search_vector",
        "Find passages of the user's documents by a vector of your own, made by the model of the"
        " collection. Each is shown with the number [n] by which to cite it.",
        object_schema(
            "vector",
            vector={
                "type": "array",
                "items": {"type": "number"},
                "minItems": 1,
                "maxItems": MAX_VECTOR_NUMBERS,
                "description": "As many numbers as the collection's vectors have.",
            },
            **{name: part for name, part in _SEARCH_PARAMETERS.items() if name != "query"},
        ),
        writes=False,
        run=document_tools.search_vector,
    ),
    Tool(
        "get_document",
        "Read a document by its id, as a search tells it. A long one is read in parts.",
        object_schema(
            "id",
            id={**_ID, "description": "Its id, such as handbook/leave.md."},
            collection={**_COLLECTION, "description": "The collection that it is in."},
            start={
                "type": "integer",
                "minimum": 0,
                "maximum": MAX_OFFSET,
                "default": 0,
                "description": "The character from which to read on.",
            },
        ),
        writes=False,
        run=document_tools.get_document,
    ),
    Tool(
        "index_document",
        "Store a text as a document, in place of what has the same id, so that it is found from now"
        " on. Only when the user asked for it.",
        object_schema(
            "",
            **_DOCUMENT,
            documents={
                "type": "array",
                "minItems": 1,
                "maxItems": document_tools.MAX_DOCUMENTS,
                "items": object_schema("id content", **_DOCUMENT),
                "description": "Several at once, instead: each with id and content.",
            },
            texts={
                "type": "array",
                "minItems": 1,
                "maxItems": document_tools.MAX_DOCUMENTS,
                "items": _CONTENT,
                "description": "Or bare texts, which get the ids id_prefix:0, id_prefix:1, …",
            },
            id_prefix={**_ID, "maxLength": MAX_ID_CHARACTERS - 4, "description": "Of texts."},
            collection=_TARGET_COLLECTION,
        ),
        writes=True,
        run=document_tools.index_document,
    ),
    Tool(
        "remove_document",
        "Remove a document by its id, so that it is found no more. Only when the user asked for"
        " it.",
        object_schema(
            "id",
            id={**_ID, "description": "Its id, as a search tells it."},
            collection=_TARGET_COLLECTION,
        ),
        writes=True,
        run=document_tools.remove_document,
    ),
    Tool(
        "list_collections",
        "The collections of documents that can be searched.",
        object_schema(""),
        writes=False,
        run=document_tools.list_collections,
    ),
    Tool(
        "list_tables",
        "The tables of databases that are described here, with their columns.",
        object_schema(
            "",
            database={
                "type": "string",
                "maxLength": 500,
                "description": "Only of this database. Default: of all.",
            },
            collection=_COLLECTION,
            name_contains={
                "type": "string",
                "maxLength": 200,
                "description": "Only tables in whose names this stands.",
            },
        ),
        writes=False,
        run=document_tools.list_tables,
    ),
)

#: In the order in which a model receives them.
TOOLS = tools_by_name((*_DOCUMENT_TOOLS, *MEMORY_TOOLS, *GRAPH_TOOLS))


def tools_for(context: RagContext, names: Sequence[str] = ()) -> list[Tool]:
    """The tools that this caller may use, limited to `names` if given: by the key's scopes, by the
    user's role for those that write shared data, and by filters they do not support. Raises
    NotFound for an unknown name."""
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise NotFound(f"There is no tool “{unknown[0]}”. There are: {', '.join(TOOLS)}.")
    wanted = [TOOLS[name] for name in dict.fromkeys(names)] if names else list(TOOLS.values())
    usable = [
        tool
        for tool in wanted
        if context.allows(required_scope(tool))
        and (tool.writes or not context.filter or tool.name not in GRAPH_NAMES)
    ]
    if not any(map(_needs_editor, usable)):
        return usable
    edits = can_edit(user=context.user, workspace=context.workspace)
    return [tool for tool in usable if edits or not _needs_editor(tool)]


def schemas(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The tools as a chat model receives them."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in tools
    ]


def call(name: str, arguments: Mapping[str, Any] | str, *, context: RagContext) -> ToolAnswer:
    """Run a tool with a model's arguments: an object, or JSON text. Invalid arguments and missing
    rights become an answer. An argument that is null counts as omitted. Raises NotFound for an
    unknown tool, and Cancelled."""
    context.check()
    try:
        if isinstance(arguments, str):
            if len(arguments) > MAX_ARGUMENTS_CHARACTERS:
                raise InvalidInput(
                    f"The arguments have more than {MAX_ARGUMENTS_CHARACTERS:,} characters. Send"
                    " less."
                )
            arguments = bounded_json.parse(arguments or "{}")
        if not isinstance(arguments, Mapping):
            raise InvalidInput('The arguments must be a JSON object, as in {"query": "…"}.')
        bounded_json.check(dict(arguments))
    except InvalidInput as error:
        place = f"{error.field[:100]}: " if error.field else ""
        return ToolAnswer(f"Error: {place}{error}", is_error=True)
    given = {name: value for name, value in arguments.items() if value is not None}
    with (
        acting(channel=Channel.TOOL, user=context.user, key=current_actor().key),
        workspace_context(context.workspace.pk),
    ):
        answer = call_tool(TOOLS, name, given, scope=context)
    context.check()
    return answer
