"""`POST /v1/embeddings`: vectors of texts."""

from typing import Any

import numpy as np
from drf_spectacular.utils import (
    OpenApiExample,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.connections import give_back
from common.errors import InvalidInput
from common.serializers import HelpfulSerializer
from inference.base import Embedder, EmptyText, InferenceError
from rag.failures import ModelFailed
from rag.openai.base import OpenAIView
from rag.openai.catalogue import embedder_named
from rag.openai.texts import MAX_CHARACTERS, MAX_TEXTS, TextsField
from rag.openai.vectors import Vectors, encoded, shortened

QUESTION = OpenApiExample(
    "Two texts",
    value={"model": "all-MiniLM-L6-v2", "input": ["Lost key cards", "Opening hours"]},
    request_only=True,
)


@extend_schema_serializer(component_name="OpenAIEmbeddingsRequest")
class EmbeddingsInput(HelpfulSerializer):
    """Texts to be embedded."""

    model = serializers.CharField(
        default="", allow_blank=True, help_text="An embedder of `/v1/models`. Default: the site's."
    )
    input = TextsField(
        help_text=f"A text or up to {MAX_TEXTS:,}, of {MAX_CHARACTERS:,} characters together."
    )
    encoding_format = serializers.ChoiceField(
        choices=["float", "base64"], default="float", help_text="`base64` of float32."
    )
    dimensions = serializers.IntegerField(
        required=False,
        allow_null=True,
        min_value=1,
        help_text="The first so many, of models whose vectors can be cut.",
    )
    input_type = serializers.ChoiceField(
        choices=["document", "query"],
        default="document",
        help_text="Not OpenAI's: `query` embeds questions as the model wants them.",
    )


@extend_schema_field(
    {
        "oneOf": [
            {"type": "array", "items": {"type": "number", "format": "double"}},
            {"type": "string", "format": "byte"},
        ]
    }
)
class VectorField(serializers.Field[Any, Any, Any, Any]):
    """Numbers, or base64 of them."""


@extend_schema_serializer(component_name="OpenAIEmbedding")
class EmbeddingSerializer(serializers.Serializer[Any]):
    """The vector of one text."""

    object = serializers.CharField(help_text="`embedding`.")
    index = serializers.IntegerField(help_text="Of its text in `input`.")
    embedding = VectorField(help_text="Numbers; with `base64`, a string.")
    tokens = serializers.IntegerField(help_text="Not OpenAI's: of this text, as the model counts.")


@extend_schema_serializer(component_name="OpenAIEmbeddingsUsage")
class UsageSerializer(serializers.Serializer[Any]):
    """Tokens as the model counts them."""

    prompt_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()


@extend_schema_serializer(component_name="OpenAIEmbeddings", many=False)
class EmbeddingsSerializer(serializers.Serializer[Any]):
    """Vectors in the order of the texts."""

    object = serializers.CharField(help_text="`list`.")
    data = EmbeddingSerializer(many=True)  # type: ignore[assignment]  # taken out by DRF
    model = serializers.CharField()
    usage = UsageSerializer()


@extend_schema(tags=["openai"])
class EmbeddingsView(OpenAIView):
    """Vectors."""

    asks_model = True

    @extend_schema(
        operation_id="openai_embeddings",
        summary="Embed texts as OpenAI does",
        request=EmbeddingsInput,
        responses=EmbeddingsSerializer,
        examples=[QUESTION],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(EmbeddingsInput)
        name, embedder = embedder_named(asked["model"])
        give_back()
        vectors, counts = embedded(embedder, asked["input"], as_query=_is_query(asked))
        vectors = shortened(vectors, asked.get("dimensions"), model=embedder.model_name)
        form = asked["encoding_format"]
        rows = [
            {
                "object": "embedding",
                "index": at,
                "embedding": encoded(vector, form),
                "tokens": count,
            }
            for at, (vector, count) in enumerate(zip(vectors, counts, strict=True))
        ]
        usage = {"prompt_tokens": sum(counts), "total_tokens": sum(counts)}
        return Response({"object": "list", "data": rows, "model": name, "usage": usage})


def embedded(embedder: Embedder, texts: list[str], *, as_query: bool) -> tuple[Vectors, list[int]]:
    """Shape (len(texts), dimensions), and how many tokens each text has. Raises ModelFailed, and
    InvalidInput for a text in which there is nothing."""
    try:
        counter = embedder.token_counter()
        counts = [counter.count(text) for text in texts]
        return (_queries if as_query else _documents)(embedder, texts), counts
    except EmptyText as error:
        raise InvalidInput(
            f"Text {error.index} holds nothing to embed. Leave it out.", field="input"
        ) from error
    except InferenceError as error:
        raise ModelFailed(error) from error


def _documents(embedder: Embedder, texts: list[str]) -> Vectors:
    return embedder.embed_documents(texts)


def _queries(embedder: Embedder, texts: list[str]) -> Vectors:
    if together := getattr(embedder, "embed_queries", None):
        vectors: Vectors = together(texts)
        return vectors
    return np.stack([embedder.embed_query(text) for text in texts])


def _is_query(asked: dict[str, Any]) -> bool:
    return bool(asked["input_type"] == "query")
