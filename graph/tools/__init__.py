"""The graph as tools of a chat model: named, described, with a JSON Schema of their arguments, and
answered in text.

Whose eyes look at it comes from the caller. No tool takes that as an argument, so a model sees
what its user may see, and writes only where its user may.
"""

from common.tools import Tool, ToolAnswer
from graph.tools.registry import TOOLS, call

__all__ = ["TOOLS", "Tool", "ToolAnswer", "call"]
