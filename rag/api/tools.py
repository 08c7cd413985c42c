"""Tools over HTTP: what a chat model of one's own can be told of, and calls them by."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_field
from drf_spectacular.utils import extend_schema_serializer as named
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.errors import NotFound
from common.serializers import StrictSerializer
from common.tools import Tool
from rag import tools
from rag.asking import context_of

CALL = OpenApiExample(
    "A search",
    value={"arguments": {"query": "Who may carry leave over?", "top_k": 3}},
    request_only=True,
)
FOUND = OpenApiExample(
    "What the model is told",
    value={
        "text": "Found 1 relevant documents:\n\n--- Document 1 (score: 0.731) ---\n"
        '[1] "Leave > Carrying over", collection "handbook", id "leave.md"\n'
        "| Staff may carry five days over into the next year.",
        "is_error": False,
    },
    response_only=True,
)
WRONG = OpenApiExample(
    "Wrong arguments",
    value={
        "text": "Error: top_k: 'three' is not of type 'integer'. How many passages at most.",
        "is_error": True,
    },
    response_only=True,
)


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ArgumentsField(serializers.Field[Any, Any, Any, Any]):
    """Whatever a model sent: a tool has errors of its own, which the model can read."""

    def to_internal_value(self, data: Any) -> Any:
        return data


@named(component_name="ToolCall")
class CallInput(StrictSerializer):
    """What a model sent."""

    arguments = ArgumentsField(
        required=False,
        allow_null=True,
        help_text="As the tool's `parameters` describe them: an object, or the JSON text of one.",
    )


@named(component_name="Tool")
class ToolSerializer(serializers.Serializer[Tool]):
    """What a model is told of a tool."""

    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField(help_text="JSON Schema of the arguments.")
    writes = serializers.BooleanField(help_text="Whether it changes anything.")
    scope = serializers.CharField(
        source="name", help_text="What an API key needs for it: `read`, `write` or `memory`."
    )
    allowed = serializers.BooleanField(
        source="name",
        help_text="Whether you may use it: by your role, and by the API key's scopes.",
    )

    def to_representation(self, instance: Tool) -> dict[str, Any]:
        shown: dict[str, Any] = super().to_representation(instance)
        shown["scope"] = tools.scope_of(instance)
        shown["allowed"] = instance.name in self.context["allowed"]
        return shown


@named(component_name="Tools")
class ToolsSerializer(serializers.Serializer[Any]):
    """In the order in which a model is shown them."""

    tools = ToolSerializer(many=True)


@named(component_name="ToolAnswer")
class AnswerSerializer(serializers.Serializer[tools.ToolAnswer]):
    """What the model is told."""

    text = serializers.CharField()
    is_error = serializers.BooleanField(
        help_text="Whether the tool did nothing; the text then says why, and the cure."
    )


@extend_schema(tags=["tools"])
class ToolsView(WorkspaceView):
    """The registry."""

    required_scope = "read"

    @extend_schema(
        operation_id="tools_list",
        summary="List the tools of chat models",
        responses=ToolsSerializer,
    )
    def get(self, request: Request) -> Response:
        allowed = {tool.name for tool in tools.tools_for(context_of(self))}
        listed = ToolsSerializer(
            {"tools": list(tools.TOOLS.values())}, context={"allowed": allowed}
        )
        return Response(listed.data)


@extend_schema(tags=["tools"])
class ToolCallView(WorkspaceView):
    """One tool."""

    @property
    def required_scope(self) -> str:  # type: ignore[override]  # known with the address
        """The tool's own."""
        tool = tools.TOOLS.get(self.kwargs["name"]) if hasattr(self, "kwargs") else None
        return tools.scope_of(tool) if tool else "read"

    @extend_schema(
        operation_id="tools_call",
        summary="Call a tool as a chat model would",
        description="What is wrong with the arguments is an answer, too, for the model to read:"
        " `is_error` says so. A tool that writes needs the editor role.",
        request=CallInput,
        responses={200: AnswerSerializer},
        examples=[CALL, FOUND, WRONG],
    )
    def post(self, request: Request, name: str) -> Response:
        if name not in tools.TOOLS:
            raise NotFound(f"There is no tool “{name}”. There are: {', '.join(tools.TOOLS)}.")
        body = CallInput(data=request.data)
        body.is_valid(raise_exception=True)
        arguments = body.validated_data.get("arguments")
        given = {} if arguments is None else arguments
        answer = tools.call(name, given, context=context_of(self))
        return Response(AnswerSerializer(answer).data)
