"""`GET /v1/models`: what a request may name as its model."""

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from rag.asking import context_of
from rag.openai.base import OpenAIView
from rag.openai.catalogue import Model, model_named, models

EXAMPLE = OpenApiExample(
    "A model",
    value={
        "id": "extractive",
        "object": "model",
        "created": 0,
        "owned_by": "ragsite",
        "kind": "chat",
    },
    response_only=True,
)


@extend_schema_serializer(component_name="OpenAIModel")
class ModelSerializer(serializers.Serializer[Any]):
    """A model."""

    id = serializers.CharField(help_text="What `model` of a request may say.")
    object = serializers.CharField(help_text="`model`.")
    created = serializers.IntegerField(help_text="Seconds since 1970; 0 where nobody knows.")
    owned_by = serializers.CharField(help_text="Its maker, or `ragsite`.")
    kind = serializers.CharField(help_text="`chat`, `pipeline`, `embedding` or `rerank`.")


@extend_schema_serializer(component_name="OpenAIModels", many=False)
class ModelsSerializer(serializers.Serializer[Any]):
    """All of them."""

    object = serializers.CharField(help_text="`list`.")
    data = ModelSerializer(many=True)  # type: ignore[assignment]  # DRF's metaclass takes it out


@extend_schema(tags=["openai"])
class ModelsView(OpenAIView):
    """The list."""

    @extend_schema(
        operation_id="openai_models_list",
        summary="List models as OpenAI does",
        description="Chat models, `extractive`, pipelines as `pipeline/ID`, embedders, rerankers.",
        responses=ModelsSerializer,
    )
    def get(self, request: Request) -> Response:
        listed = models(context_of(self))
        return Response({"object": "list", "data": [_shown(model) for model in listed]})


@extend_schema(tags=["openai"])
class ModelView(OpenAIView):
    """One of them."""

    @extend_schema(
        operation_id="openai_models_retrieve",
        summary="Read a model as OpenAI shows it",
        responses=ModelSerializer,
        examples=[EXAMPLE],
    )
    def get(self, request: Request, model: str) -> Response:
        return Response(_shown(model_named(model, context=context_of(self))))


def _shown(model: Model) -> dict[str, Any]:
    return {
        "id": model.id,
        "object": "model",
        "created": model.created,
        "owned_by": model.owner,
        "kind": model.kind,
    }
