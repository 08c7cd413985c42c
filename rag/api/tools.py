"""Tools over HTTP: descriptions for a chat model of one's own, and calling them."""

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_field
from drf_spectacular.utils import extend_schema_serializer as named
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.errors import NotFound
from common.openapi import load_examples
from common.serializers import StrictSerializer
from common.tools import Tool
from rag import tools
from rag.context import context_of_view

examples = load_examples("rag.api")


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ArgumentsField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON: tools report errors in arguments themselves, for the model to read."""

    def to_internal_value(self, data: Any) -> Any:
        return data


@named(component_name="ToolCall")
class ToolCallInput(StrictSerializer):
    """The arguments a model sent."""

    arguments = ArgumentsField(
        required=False,
        allow_null=True,
        help_text="As the tool's `parameters` describe them: an object, or the JSON text of one.",
    )


@named(component_name="Tool")
class ToolSerializer(serializers.Serializer[Tool]):
    """A tool as a model receives it."""

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
        data: dict[str, Any] = super().to_representation(instance)
        data["scope"] = tools.required_scope(instance)
        data["allowed"] = instance.name in self.context["allowed"]
        return data


@named(component_name="Tools")
class ToolsSerializer(serializers.Serializer[Any]):
    """In the order in which a model receives them."""

    tools = ToolSerializer(many=True)


@named(component_name="ToolAnswer")
class ToolAnswerSerializer(serializers.Serializer[tools.ToolAnswer]):
    """The tool's answer for the model."""

    text = serializers.CharField()
    is_error = serializers.BooleanField(
        help_text="Whether the tool did nothing; the text then says why, and the cure."
    )


@extend_schema(tags=["tools"])
class ToolsView(WorkspaceView):
    """`GET /api/v1/tools/`: the tools, and which the caller may use."""

    required_scope = "read"

    @extend_schema(
        operation_id="tools_list",
        summary="List the tools of chat models",
        responses=ToolsSerializer,
    )
    def get(self, request: Request) -> Response:
        allowed = {tool.name for tool in tools.tools_for(context_of_view(self))}
        listed = ToolsSerializer(
            {"tools": list(tools.TOOLS.values())}, context={"allowed": allowed}
        )
        return Response(listed.data)


@extend_schema(tags=["tools"])
class ToolCallView(WorkspaceView):
    """`POST /api/v1/tools/{name}/`: runs one tool."""

    @property
    def required_scope(self) -> str:  # type: ignore[override]  # known with the address
        tool = tools.TOOLS.get(self.kwargs["name"]) if hasattr(self, "kwargs") else None
        return tools.required_scope(tool) if tool else "read"

    @extend_schema(
        operation_id="tools_call",
        summary="Call a tool as a chat model would",
        description="What is wrong with the arguments is an answer, too, for the model to read:"
        " `is_error` says so. A tool that writes needs the editor role.",
        request=ToolCallInput,
        responses={200: ToolAnswerSerializer},
        examples=[examples.CALL, examples.RESULT, examples.ERROR],
    )
    def post(self, request: Request, name: str) -> Response:
        if name not in tools.TOOLS:
            raise NotFound(f"There is no tool “{name}”. There are: {', '.join(tools.TOOLS)}.")
        body = ToolCallInput(data=request.data)
        body.is_valid(raise_exception=True)
        arguments = body.validated_data.get("arguments")
        given = {} if arguments is None else arguments
        answer = tools.call(name, given, context=context_of_view(self))
        return Response(ToolAnswerSerializer(answer).data)
