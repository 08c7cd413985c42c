"""What a request may name: tools, described for a chat model of one's own and called, and the chat
models, embedders and rerankers of the site."""

from contextlib import suppress
from typing import Any

from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from accounts.api import WorkspaceView, operation
from common.errors import NotFound
from common.serializers import ResultSerializer, StrictSerializer
from common.tools import Tool
from documents.models import EmbeddingSpace
from inference.chat_models import ModelName, chat_models
from inference.model_registry import rerankers
from rag import tools
from rag.context import context_of_view


@extend_schema_field({"type": "object", "additionalProperties": {}})
class ArgumentsField(serializers.Field[Any, Any, Any, Any]):
    """Any JSON: tools report errors in arguments themselves, for the model to read."""

    def to_internal_value(self, data: Any) -> Any:
        return data


class ToolCallSerializer(StrictSerializer):
    """The arguments a model sent."""

    arguments = ArgumentsField(
        required=False,
        allow_null=True,
        help_text="As the tool's `parameters` describe them: an object, or the JSON text of one.",
    )


class ToolSerializer(serializers.Serializer[Tool]):
    """A tool as a model receives it."""

    name = serializers.CharField()
    description = serializers.CharField()
    parameters = serializers.DictField(help_text="JSON Schema of the arguments.")
    writes = serializers.BooleanField(help_text="Whether it changes anything.")
    scope = serializers.CharField(
        source="name",
        help_text="The scope that an API key needs for it: `read`, `write` or `memory`.",
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


class ToolsSerializer(serializers.Serializer[Any]):
    """In the order in which a model receives them."""

    tools = ToolSerializer(many=True)


class ToolAnswerSerializer(ResultSerializer):
    """The tool's answer for the model."""

    result = tools.ToolAnswer


class ToolsView(WorkspaceView):
    """`GET /api/v1/tools/`: the tools, and which the caller may use."""

    for_limited_keys = True
    required_scope = "read"

    def get_serializer_context(self) -> dict[str, Any]:
        allowed = {tool.name for tool in tools.tools_for(context_of_view(self))}
        return {**super().get_serializer_context(), "allowed": allowed}

    @operation(gives=ToolsSerializer, operation_id="tools_list")
    def get(self) -> Any:
        """List the tools of chat models."""
        return {"tools": list(tools.TOOLS.values())}


class ToolCallView(WorkspaceView):
    """`POST /api/v1/tools/{name}/`: runs one tool."""

    for_limited_keys = True

    @property
    def required_scope(self) -> str:  # type: ignore[override]  # known with the address
        tool = tools.TOOLS.get(self.kwargs["name"]) if hasattr(self, "kwargs") else None
        return tools.required_scope(tool) if tool else "read"

    def operation_arguments(self, kwargs: dict[str, Any]) -> list[Any]:
        name = kwargs.pop("name")
        if name not in tools.TOOLS:
            raise NotFound(
                gettext("The tool “{name}” does not exist. Choose one of: {tools}.").format(
                    name=name, tools=", ".join(tools.TOOLS)
                )
            )
        return [name]

    @operation(takes=ToolCallSerializer, gives=ToolAnswerSerializer, operation_id="tools_call")
    def post(self, name: str, *, arguments: Any = None) -> tools.ToolAnswer:
        """Call a tool as a chat model would.

        Errors in the arguments are returned as an answer for the model, with `is_error`. A tool
        that writes needs the editor role.
        """
        given = {} if arguments is None else arguments
        return tools.call(name, given, context=context_of_view(self))


_NO_RERANKER = "inference.backends.rerank_basic.NoReranker"


class ChatModelNameSerializer(ResultSerializer):
    """A chat model that answers questions."""

    result = ModelName


class EmbedderNameSerializer(serializers.Serializer[Any]):
    """An embedding model and the space of its vectors."""

    name = serializers.CharField(source="embedder", help_text="Its alias in the settings.")
    model = serializers.CharField(source="model_name")
    space = serializers.CharField(source="name")
    dimensions = serializers.IntegerField()
    is_default = serializers.BooleanField()


class RerankerNameSerializer(serializers.Serializer[Any]):
    """A reranker configured on this site."""

    name = serializers.CharField(help_text="Its alias in the settings.")
    is_default = serializers.BooleanField()


class ModelsSerializer(serializers.Serializer[Any]):
    """All models, by what they do."""

    chat = ChatModelNameSerializer(many=True)
    embedders = EmbedderNameSerializer(many=True)
    rerankers = RerankerNameSerializer(many=True)


class ModelsView(WorkspaceView):
    """`GET /api/v1/models/`: models of the site by what they do."""

    for_limited_keys = True
    required_scope = "read"

    @operation(gives=ModelsSerializer, operation_id="models_list")
    def get(self) -> Any:
        """List chat models, embedders and rerankers."""
        workspace_id = None
        with suppress(NotFound):  # those of the site are listed for everybody
            workspace_id = self.workspace.pk
        return {
            "chat": chat_models(workspace_id=workspace_id),
            "embedders": EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE),
            "rerankers": [
                {"name": alias, "is_default": alias == "default"}
                for alias in rerankers
                if rerankers.find_connected(alias)
                or rerankers.configured()[alias]["BACKEND"] != _NO_RERANKER
            ],
        }
