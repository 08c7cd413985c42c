"""The chat models, embedders and rerankers that a request may name."""

from typing import Any

from django.conf import settings
from drf_spectacular.utils import extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.openapi import load_examples
from documents.models import EmbeddingSpace
from inference.chat_models import chat_models

examples = load_examples("rag.api")

_NO_RERANKER = "inference.backends.rerank_basic.NoReranker"


@extend_schema_serializer(component_name="ChatModelName")
class ChatModelSerializer(serializers.Serializer[Any]):
    """A chat model that answers questions."""

    name = serializers.CharField(help_text="What `model` of a question may say.")
    owner = serializers.CharField(help_text="Its maker, or `ragsite`.")
    is_default = serializers.BooleanField()


@extend_schema_serializer(component_name="EmbedderName")
class EmbedderSerializer(serializers.Serializer[Any]):
    """An embedding model and the space of its vectors."""

    name = serializers.CharField(source="embedder", help_text="Its alias in the settings.")
    model = serializers.CharField(source="model_name")
    space = serializers.CharField(source="name")
    dimensions = serializers.IntegerField()
    is_default = serializers.BooleanField()


@extend_schema_serializer(component_name="RerankerName")
class RerankerSerializer(serializers.Serializer[Any]):
    """A reranker configured on this site."""

    name = serializers.CharField(help_text="Its alias in the settings.")
    is_default = serializers.BooleanField()


@extend_schema_serializer(component_name="Models")
class ModelsSerializer(serializers.Serializer[Any]):
    """All models, by what they do."""

    chat = ChatModelSerializer(many=True)
    embedders = EmbedderSerializer(many=True)
    rerankers = RerankerSerializer(many=True)


@extend_schema(tags=["models"])
class ModelsView(WorkspaceView):
    """`GET /api/v1/models/`: models of the site by what they do."""

    required_scope = "read"

    @extend_schema(
        operation_id="models_list",
        summary="List chat models, embedders and rerankers",
        responses=ModelsSerializer,
        examples=[examples.MODELS],
    )
    def get(self, request: Request) -> Response:
        rerankers = settings.INFERENCE.get("reranker", {})
        listed = {
            "chat": chat_models(),
            "embedders": EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE),
            "rerankers": [
                {"name": alias, "is_default": alias == "default"}
                for alias, entry in rerankers.items()
                if entry["BACKEND"] != _NO_RERANKER
            ],
        }
        return Response(ModelsSerializer(listed).data)
