"""`POST /v1/rerank` and `/v2/rerank`: documents by relevance to a query, as in the APIs of Cohere
and Jina."""

from typing import Any
from uuid import uuid4

from rest_framework import serializers

from accounts.api import operation
from common.sql import release_connection
from inference.interfaces import InferenceError
from rag.errors import ModelFailed
from rag.openai.embeddings import embed_texts
from rag.openai.models import get_embedder, get_reranker
from rag.openai.protocol import (
    MAX_CHARACTERS,
    MAX_TEXTS,
    DocumentsField,
    NullMeansLeftOut,
    OpenAIView,
)

MAX_QUERY_CHARACTERS = 8_000


class RerankRequestSerializer(NullMeansLeftOut):
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
        required=False, min_value=1, help_text="Only the best so many."
    )
    return_documents = serializers.BooleanField(
        default=False, help_text="Send the texts back, too."
    )


class RerankDocumentSerializer(serializers.Serializer[Any]):
    """A document as the request gave it."""

    text = serializers.CharField()


class RerankResultSerializer(serializers.Serializer[Any]):
    """The relevance of one document."""

    index = serializers.IntegerField(help_text="Of the document in `documents`.")
    relevance_score = serializers.FloatField(help_text="0 to 1, higher is better.")
    document = RerankDocumentSerializer(required=False)


class RerankUsageSerializer(serializers.Serializer[Any]):
    """How many tokens were used."""

    total_tokens = serializers.IntegerField(help_text="0 where the model does not count.")


class RerankAnswerSerializer(serializers.Serializer[Any]):
    """Results, best first; equal scores keep the input's order."""

    id = serializers.CharField()
    model = serializers.CharField(help_text="What judged.")
    results = RerankResultSerializer(many=True)
    usage = RerankUsageSerializer()
    meta = serializers.DictField(child=serializers.DictField())


class RerankView(OpenAIView):
    """The endpoints `POST /v1/rerank` and `POST /v2/rerank`."""

    asks_model = True
    version = "1"

    @operation(takes=RerankRequestSerializer, gives=RerankAnswerSerializer, operation_id="rerank")
    def post(
        self, *, model: str, query: str, documents: list[str], **wanted: Any
    ) -> dict[str, Any]:
        """Rerank documents as Cohere and Jina do.

        Without a reranker documents are scored by how alike their vectors and the query's are;
        `model` of the answer then says `embedding-similarity`.
        """
        name, reranker = get_reranker(model)
        release_connection()
        if reranker:
            try:
                scores, tokens = reranker.score(query, documents), 0
            except InferenceError as error:
                raise ModelFailed(error) from error
        else:
            # Cosine similarities to the query, -1 to 1; -1 for an empty document.
            _, embedder = get_embedder("")
            scores = [-1.0] * len(documents)
            query_vectors, counts = embed_texts(embedder, [query], as_query=True)
            full = [at for at, text in enumerate(documents) if text.strip()]
            if full:
                texts = [documents[at] for at in full]
                vectors, more = embed_texts(embedder, texts, as_query=False)
                counts = counts + more
                for at, similarity in zip(full, (vectors @ query_vectors[0]).tolist(), strict=True):
                    scores[at] = similarity
            tokens = sum(counts)
        order = sorted(range(len(documents)), key=lambda at: -scores[at])[: wanted.get("top_n")]
        results = [
            {
                "index": at,
                "relevance_score": min(1.0, max(0.0, scores[at])),
                **({"document": {"text": documents[at]}} if wanted["return_documents"] else {}),
            }
            for at in order
        ]
        return {
            "id": str(uuid4()),
            "model": name,
            "results": results,
            "usage": {"total_tokens": tokens},
            "meta": {"api_version": {"version": self.version}},
        }
