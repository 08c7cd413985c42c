"""Which tools a caller may use. Each tool checks for itself again when it is run."""

from accounts.services import can_edit
from common.tools import Tool
from rag.context import RagContext
from rag.tools.borrowed import GRAPH_NAMES, MEMORY_NAMES


def scope_of(tool: Tool) -> str:
    """What an API key must have for it."""
    if tool.name in MEMORY_NAMES:
        return "memory"
    return "write" if tool.writes else "read"


def allowed(tools: list[Tool], context: RagContext) -> list[Tool]:
    """Those of `tools` that would not be refused: by the key's scopes, by the user's role where
    they write what all see, and by a filter that they cannot follow."""
    with_key = [tool for tool in tools if context.allows(scope_of(tool))]
    if context.filter:
        with_key = [tool for tool in with_key if not _reads_graph(tool)]
    if not any(map(_needs_editor, with_key)):
        return with_key
    edits = can_edit(user=context.user, workspace=context.workspace)
    return [tool for tool in with_key if edits or not _needs_editor(tool)]


def _needs_editor(tool: Tool) -> bool:
    return tool.writes and tool.name not in MEMORY_NAMES


def _reads_graph(tool: Tool) -> bool:
    return tool.name in GRAPH_NAMES and not tool.writes
