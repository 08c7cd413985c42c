"""Tools of a chat model: named, described, with a JSON Schema of their arguments, and answered in
text.

On whose behalf one runs comes from the caller, as `rag.context.RagContext`. No tool takes that as
an argument, so a model can neither choose nor be talked into more than its user may.
"""

from common.tools import Tool, ToolAnswer
from rag.tools.registry import TOOLS, call, schemas, tools_for
from rag.tools.rights import scope_of

__all__ = ["TOOLS", "Tool", "ToolAnswer", "call", "schemas", "scope_of", "tools_for"]
