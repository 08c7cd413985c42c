"""Tools of a chat model: named, described by JSON Schema, answering in text. Begin with `TOOLS`,
`tools_for` and `call`.

On whose behalf a tool runs comes from the caller, as `rag.context.RagContext`. No tool takes it as
an argument, so a model can neither choose it nor be persuaded to exceed its user's rights.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from django.utils.translation import gettext

from accounts.api_keys import KeyLimited
from accounts.audit import Channel, acting, current_actor
from accounts.services import can_edit
from common import bounded_json, features
from common.errors import InvalidInput, NotFound
from common.rls import workspace_context
from common.tools import Tool, ToolAnswer, run_tool, tools_by_name
from common.translation import format_number
from graph.scopes import graph_scope
from graph.tools import TOOLS as GRAPH_TOOLS
from memory.tools import TOOLS as MEMORY_TOOLS
from rag.context import RagContext
from rag.tools.document_tools import (
    get_document,
    hybrid_query,
    list_collections,
    list_tables,
    search_vector,
    search_words,
    similarity_search,
)
from rag.tools.document_writing import index_document, remove_document
from rag.tools.summaries import TOOLS as SUMMARY_TOOLS
from rag.tools.tables import TOOLS as TABLE_TOOLS

__all__ = ["TOOLS", "Tool", "ToolAnswer", "call", "required_scope", "schemas", "tools_for"]

MAX_ARGUMENTS_CHARACTERS = 1_000_000

_DOCUMENT_TOOLS = tools_by_name(
    "documents",
    (
        similarity_search,
        hybrid_query,
        search_words,
        search_vector,
        get_document,
        index_document,
        remove_document,
        list_collections,
        list_tables,
    ),
    writing={index_document, remove_document},
)
#: In the order in which a model receives them.
TOOLS: Mapping[str, Tool] = {
    **_DOCUMENT_TOOLS,
    **SUMMARY_TOOLS,
    **TABLE_TOOLS,
    **MEMORY_TOOLS,
    **GRAPH_TOOLS,
}


def required_scope(tool: Tool) -> str:
    """The scope an API key needs for the tool."""
    if tool.family == "memory":
        return "memory"
    return "write" if tool.writes else "read"


def _needs_editor(tool: Tool) -> bool:
    return tool.writes and tool.family != "memory"


def _scope_for(tool: Tool, context: RagContext) -> Any:
    """What the tool works on: the context, or the user's memory, or the graph. Raises Forbidden for
    a key without the right to it."""
    if tool.family == "documents":
        return context
    if tool.family == "memory":
        return context.memory_scope
    if tool.writes:
        context.require("write")
        if context.key_collections is not None:
            raise KeyLimited
        # Not `context.graph_scope`: a key may have the right to write and none to read.
        return graph_scope(user=context.user, workspace=context.workspace)
    if context.filter:
        raise InvalidInput(
            gettext(
                "This conversation has a document filter, which the graph does not support."
                " Use hybrid_query."
            )
        )
    return context.graph_scope


def tools_for(context: RagContext, names: Sequence[str] = ()) -> list[Tool]:
    """The tools that this caller may use, limited to `names` if given: by what is switched on, the
    key's scopes, the user's role for those that write shared data, and filters they do not support.
    Raises NotFound for an unknown name."""
    unknown = [name for name in names if name not in TOOLS]
    if unknown:
        raise NotFound(
            gettext("The tool “{name}” does not exist. Choose one of: {tools}.").format(
                tools=", ".join(TOOLS), name=unknown[0]
            )
        )
    wanted = [TOOLS[name] for name in dict.fromkeys(names)] if names else list(TOOLS.values())
    usable = [
        tool
        for tool in wanted
        if (tool.family == "documents" or features.is_on(tool.family))
        and context.allows(required_scope(tool))
        and (tool.writes or not context.filter or tool.family != "graph")
        and not (tool.writes and tool.family == "graph" and context.key_collections is not None)
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
                    gettext("The arguments have more than {limit} characters. Send less.").format(
                        limit=format_number(MAX_ARGUMENTS_CHARACTERS)
                    )
                )
            arguments = bounded_json.parse(arguments or "{}")
        if not isinstance(arguments, Mapping):
            raise InvalidInput(
                gettext('The arguments must be a JSON object, as in {"query": "…"}.')
            )
        bounded_json.check(dict(arguments))
    except InvalidInput as error:
        place = f"{error.field[:100]}: " if error.field else ""
        return ToolAnswer(f"Error: {place}{error}", is_error=True)
    given = {name: value for name, value in arguments.items() if value is not None}
    with (
        acting(channel=Channel.TOOL, user=context.user, key=current_actor().key),
        workspace_context(context.workspace.pk, collections=context.key_collections),
    ):
        answer = run_tool(TOOLS, name, given, scope=context, scope_for=_scope_for)
    context.check()
    return answer
