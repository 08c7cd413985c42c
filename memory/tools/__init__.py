"""Memory as tools of a chat model: named, described, with a JSON Schema of their arguments, and
answered in text.

Whose memory it is comes from the caller. No tool takes that as an argument, so a model can neither
choose nor be talked into another user's.
"""

from common.tools import Tool, ToolAnswer
from memory.tools.registry import TOOLS, call

__all__ = ["TOOLS", "Tool", "ToolAnswer", "call"]
