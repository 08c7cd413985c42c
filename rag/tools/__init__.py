"""Tools of a chat model: named, described by JSON Schema, answering in text.

On whose behalf a tool runs comes from the caller, as `rag.context.RagContext`. No tool takes it as
an argument, so a model can neither choose it nor be persuaded to exceed its user's rights.
"""

from common.tools import Tool, ToolAnswer
from rag.tools.registry import TOOLS, call, required_scope, schemas, tools_for

__all__ = ["TOOLS", "Tool", "ToolAnswer", "call", "required_scope", "schemas", "tools_for"]
