"""`POST /v1/rerank` and `/v2/rerank`: documents by how well they answer, as Cohere and Jina ask."""

from typing import Any
from uuid import uuid4

import numpy as np
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from common.connections import give_back
from inference.base import InferenceError, Reranker
from rag.failures import ModelFailed
from rag.openai.base import OpenAIView
from rag.openai.catalogue import embedder_named, reranker_named
from rag.openai.embeddings import embedded
from rag.openai.texts import MAX_CHARACTERS, MAX_TEXTS, DocumentsField

MAX_QUERY_CHARACTERS = 8_000
QUESTION = OpenApiExample(
    "Two documents",
    value={
        "query": "Where do I report a lost key card?",
        "documents": ["The reception opens at eight.", "Report lost cards to the reception."],
        "top_n": 1,
    },
    request_only=True,
)


@extend_schema_serializer(component_name="RerankRequest")
class RerankInput(serializers.Serializer[Any]):
    """A query and documents that may answer it."""

    model = serializers.CharField(
        default="",
        allow_blank=True,
        help_text="A reranker of `/v1/models`. Default: the site's, else `embedding-similarity`.",
    )
    query = serializers.CharField(max_length=MAX_QUERY_CHARACTERS)
    documents = DocumentsField(
        help_text=f"Up to {MAX_TEXTS:,}, of {MAX_CHARACTERS:,} characters together."
    )
    top_n = serializers.IntegerField(
        required=False, allow_null=True, min_value=1, help_text="Only the best so many."
    )
    return_documents = serializers.BooleanField(
        default=False, allow_null=True, help_text="Send the texts back, too."
    )


@extend_schema_serializer(component_name="RerankDocument")
class DocumentSerializer(serializers.Serializer[Any]):
    """A document as it came."""

    text = serializers.CharField()


@extend_schema_serializer(component_name="RerankResult")
class ResultSerializer(serializers.Serializer[Any]):
    """How well one document answers."""

    index = serializers.IntegerField(help_text="Of the document in `documents`.")
    relevance_score = serializers.FloatField(help_text="0 to 1, higher is better.")
    document = DocumentSerializer(required=False)


@extend_schema_serializer(component_name="RerankUsage")
class UsageSerializer(serializers.Serializer[Any]):
    """What it took."""

    total_tokens = serializers.IntegerField(help_text="0 where the model does not count.")


@extend_schema_serializer(component_name="RerankAnswer", many=False)
class RerankSerializer(serializers.Serializer[Any]):
    """The best first; what is equally good stays in the order in which it came."""

    id = serializers.CharField()
    model = serializers.CharField(help_text="What judged.")
    results = ResultSerializer(many=True)
    usage = UsageSerializer()
    meta = serializers.DictField(child=serializers.DictField())


@extend_schema(tags=["openai"])
class RerankView(OpenAIView):
    """Scores."""

    asks_model = True
    version = "1"

    @extend_schema(
        operation_id="rerank",
        summary="Rerank documents as Cohere and Jina do",
        description="Without a reranker documents are scored by how alike their vectors and the"
        " query's are; `model` of the answer then says `embedding-similarity`.",
        request=RerankInput,
        responses=RerankSerializer,
        examples=[QUESTION],
    )
    def post(self, request: Request) -> Response:
        asked = self.body(RerankInput)
        name, reranker = reranker_named(asked["model"])
        give_back()
        query, texts = asked["query"], asked["documents"]
        scores, tokens = _judged(reranker, query, texts) if reranker else _alike(query, texts)
        order = sorted(range(len(texts)), key=lambda at: -scores[at])[: asked.get("top_n")]
        results = [
            {
                "index": at,
                "relevance_score": min(1.0, max(0.0, scores[at])),
                **({"document": {"text": texts[at]}} if asked["return_documents"] else {}),
            }
            for at in order
        ]
        return Response(
            {
                "id": str(uuid4()),
                "model": name,
                "results": results,
                "usage": {"total_tokens": tokens},
                "meta": {"api_version": {"version": self.version}},
            }
        )


def _judged(reranker: Reranker, query: str, texts: list[str]) -> tuple[list[float], int]:
    try:
        return reranker.score(query, texts), 0
    except InferenceError as error:
        raise ModelFailed(error) from error


def _alike(query: str, texts: list[str]) -> tuple[list[float], int]:
    """Cosines to the query, -1 to 1. A document that is empty is like nothing."""
    _, embedder = embedder_named("")
    full = [at for at, text in enumerate(texts) if text.strip()]
    asked, query_counts = embedded(embedder, [query], as_query=True)
    if not full:
        return [-1.0] * len(texts), sum(query_counts)
    vectors, counts = embedded(embedder, [texts[at] for at in full], as_query=False)
    scores = np.full(len(texts), -1.0)
    scores[full] = vectors @ asked[0]
    return scores.tolist(), sum(query_counts) + sum(counts)
