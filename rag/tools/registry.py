"""The tools by name, each with what a model reads of it, and the one way to call them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from accounts.history import Door, acting, current_actor
from common import bounded_json
from common.errors import InvalidInput, NotFound
from common.fence import fenced_to
from common.fusion_options import DEPTHS, METHODS, RRF_KS
from common.tools import TEXT, Tool, ToolAnswer, by_name, object_schema
from common.tools import call as call_tool
from rag.context import RagContext
from rag.tools import indexing, listing, reading, searching
from rag.tools.borrowed import GRAPH_TOOLS, MEMORY_TOOLS
from rag.tools.rights import allowed
from search.filters.limits import MAX_CHARACTERS as MAX_FILTER_CHARACTERS
from search.query import MAX_QUERY_CHARACTERS

MAX_ARGUMENTS_CHARACTERS = 1_000_000
MAX_ID_CHARACTERS = 1024
MAX_OFFSET = 1_000_000_000
MAX_VECTOR_NUMBERS = 16_000

_COLLECTION = {
    "type": "string",
    "maxLength": 63,
    "description": "Slug of a collection, as list_collections tells it. Default: all.",
}
_ID = {**TEXT, "maxLength": MAX_ID_CHARACTERS}
_SEARCH = {
    "query": {
        **TEXT,
        "maxLength": MAX_QUERY_CHARACTERS,
        "description": "A question, or words that the passages hold.",
    },
    "top_k": {
        "type": "integer",
        "minimum": 1,
        "maximum": searching.MAX_RESULTS,
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

_CONTENT = {**TEXT, "maxLength": indexing.MAX_CONTENT_CHARACTERS}
_DOCUMENT: dict[str, dict[str, Any]] = {
    "id": {**_ID, "description": "The id that it gets, such as notes/2026-05-01."},
    "content": {**_CONTENT, "description": "Its text."},
    "metadata": {"type": "object", "description": "What else is known of it, by name."},
    "title": {"type": "string", "maxLength": 500, "description": "Its title."},
}
_INTO = {**_COLLECTION, "description": "Slug of the collection. Needed where there are several."}
_WEIGHT = {"type": "number", "minimum": 0, "maximum": 1}

_OWN = (
    Tool(
        "similarity_search",
        "Find passages of the user's documents that mean what the query means. Each is shown with"
        " the number [n] by which to cite it.",
        object_schema("query", **_SEARCH),
        writes=False,
        run=searching.similarity_search,
    ),
    Tool(
        "hybrid_query",
        "Find passages of the user's documents by words and by meaning: better than"
        " similarity_search for names, codes and exact terms. Each is shown with the number [n] by"
        " which to cite it.",
        object_schema(
            "query",
            **_SEARCH,
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
        run=searching.hybrid_query,
    ),
    Tool(
        "search_words",
        "Find passages of the user's documents that hold the words of the query, ranked by BM25."
        " Each is shown with the number [n] by which to cite it.",
        object_schema("query", **_SEARCH),
        writes=False,
        run=searching.search_words,
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
            **{name: part for name, part in _SEARCH.items() if name != "query"},
        ),
        writes=False,
        run=searching.search_vector,
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
        run=reading.get_document,
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
                "maxItems": indexing.MAX_DOCUMENTS,
                "items": object_schema("id content", **_DOCUMENT),
                "description": "Several at once, instead: each with id and content.",
            },
            texts={
                "type": "array",
                "minItems": 1,
                "maxItems": indexing.MAX_DOCUMENTS,
                "items": _CONTENT,
                "description": "Or bare texts, which get the ids id_prefix:0, id_prefix:1, …",
            },
            id_prefix={**_ID, "maxLength": MAX_ID_CHARACTERS - 4, "description": "Of texts."},
            collection=_INTO,
        ),
        writes=True,
        run=indexing.index_document,
    ),
    Tool(
        "remove_document",
        "Remove a document by its id, so that it is found no more. Only when the user asked for"
        " it.",
        object_schema(
            "id",
            id={**_ID, "description": "Its id, as a search tells it."},
            collection=_INTO,
        ),
        writes=True,
        run=indexing.remove_document,
    ),
    Tool(
        "list_collections",
        "The collections of documents that can be searched.",
        object_schema(""),
        writes=False,
        run=listing.list_collections,
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
        run=listing.list_tables,
    ),
)

#: In the order in which a model is shown them.
TOOLS = by_name((*_OWN, *MEMORY_TOOLS, *GRAPH_TOOLS))


def tools_for(context: RagContext, names: Sequence[str] = ()) -> list[Tool]:
    """The tools that this caller may use, or those among `names`.

    Raises NotFound for a name that is no tool's.
    """
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise NotFound(f"There is no tool “{unknown[0]}”. There are: {', '.join(TOOLS)}.")
    wanted = [TOOLS[name] for name in dict.fromkeys(names)] if names else list(TOOLS.values())
    return allowed(wanted, context)


def schemas(tools: Iterable[Tool]) -> list[dict[str, Any]]:
    """The tools as a chat model is told of them."""
    return [
        {"name": tool.name, "description": tool.description, "parameters": dict(tool.parameters)}
        for tool in tools
    ]


def call(name: str, arguments: Mapping[str, Any] | str, *, context: RagContext) -> ToolAnswer:
    """Run a tool with what a model sent: an object, or the JSON text of one.

    What is wrong with that, and what the caller may not do, is an answer. An argument that is null
    counts as left out. Raises NotFound for a name that is no tool's, and Cancelled.
    """
    context.check()
    try:
        given = _read(arguments)
    except InvalidInput as error:
        place = f"{error.field[:100]}: " if error.field else ""
        return ToolAnswer(f"Error: {place}{error}", is_error=True)
    with (
        acting(door=Door.TOOL, user=context.user, key=current_actor().key),
        fenced_to(context.workspace.pk),
    ):
        answer = call_tool(TOOLS, name, given, scope=context)
    context.check()
    return answer


def _read(arguments: Mapping[str, Any] | str) -> Any:
    if isinstance(arguments, str):
        if len(arguments) > MAX_ARGUMENTS_CHARACTERS:
            raise InvalidInput(
                f"The arguments have more than {MAX_ARGUMENTS_CHARACTERS:,} characters. Send less."
            )
        arguments = bounded_json.parse(arguments or "{}")
    if not isinstance(arguments, Mapping):
        raise InvalidInput('The arguments must be a JSON object, as in {"query": "…"}.')
    bounded_json.check(dict(arguments))
    return {name: value for name, value in arguments.items() if value is not None}
