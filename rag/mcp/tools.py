"""The site's tools, as the protocol tells and calls them."""

from mcp.shared.exceptions import MCPError
from mcp.types import (
    INVALID_PARAMS,
    CallToolRequestParams,
    CallToolResult,
    ListToolsResult,
    PaginatedRequestParams,
    TextContent,
    ToolAnnotations,
)
from mcp.types import Tool as McpTool

from common.errors import RagsiteError
from common.tools import Tool
from inference.base import InferenceError
from inference.cancelling import Cancelled
from rag import tools
from rag.context import RagContext


def list_tools(context: RagContext, params: PaginatedRequestParams | None) -> ListToolsResult:
    """Those that the caller may use, on one page."""
    return ListToolsResult(tools=[_described(tool) for tool in tools.tools_for(context)])


def call_tool(context: RagContext, params: CallToolRequestParams) -> CallToolResult:
    """What a tool answers. Arguments that cannot be, and whatever the caller may not do, are an
    answer that says so, for the model to read. Raises MCPError for a name that is no tool's."""
    if params.name not in tools.TOOLS:
        raise MCPError(
            INVALID_PARAMS,
            f"There is no tool “{params.name}”. tools/list names those that there are.",
        )
    try:
        answer = tools.call(params.name, params.arguments or {}, context=context)
    except Cancelled:
        raise
    except (RagsiteError, InferenceError) as error:
        return _answer(f"Error: {error}", is_error=True)
    return _answer(answer.text, is_error=answer.is_error)


def _answer(text: str, *, is_error: bool) -> CallToolResult:
    return CallToolResult(content=[TextContent(text=text)], is_error=is_error)


def _described(tool: Tool) -> McpTool:
    return McpTool(
        name=tool.name,
        title=tool.name.replace("_", " ").capitalize(),
        description=tool.description,
        input_schema=dict(tool.parameters),
        # What is not said of a tool that writes is the worst: that it may destroy.
        annotations=ToolAnnotations(read_only_hint=not tool.writes, open_world_hint=False),
    )
