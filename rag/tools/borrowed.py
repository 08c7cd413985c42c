"""The tools of memory and graph, run on behalf of whom a request is for."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from common.errors import InvalidInput
from common.tools import Tool
from graph.scopes import graph_scope
from graph.tools import TOOLS as OF_GRAPH
from memory.tools import TOOLS as OF_MEMORY
from rag.context import RagContext

#: What they are called here → there.
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


def _for_memory(run: Callable[..., str]) -> Callable[..., str]:
    def called(*, scope: RagContext, **arguments: Any) -> str:
        return run(scope=scope.memory_scope, **arguments)

    return called


def _for_graph(run: Callable[..., str]) -> Callable[..., str]:
    def called(*, scope: RagContext, **arguments: Any) -> str:
        if scope.filter:
            raise InvalidInput(
                "This conversation is narrowed by a filter of documents, which the graph cannot"
                " follow. Use hybrid_query."
            )
        return run(scope=scope.graph_scope, **arguments)

    return called


def _for_writing(run: Callable[..., str]) -> Callable[..., str]:
    def called(*, scope: RagContext, **arguments: Any) -> str:
        scope.require("write")
        # Not `scope.graph_scope`: a key may have the right to write and none to read.
        whole = graph_scope(user=scope.user, workspace=scope.workspace)
        return run(scope=whole, **arguments)

    return called


MEMORY_TOOLS = tuple(
    replace(OF_MEMORY[there], name=name, run=_for_memory(OF_MEMORY[there].run))
    for name, there in MEMORY_NAMES.items()
)
GRAPH_TOOLS: tuple[Tool, ...] = tuple(
    replace(tool, run=(_for_writing if tool.writes else _for_graph)(tool.run))
    for tool in map(OF_GRAPH.__getitem__, GRAPH_NAMES)
)
