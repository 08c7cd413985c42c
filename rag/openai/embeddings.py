"""`POST /v1/embeddings`: vectors of texts, shortened or base64-encoded on request."""

import re
from base64 import b64encode
from typing import Any, Literal

import numpy as np
from django.utils.translation import gettext
from drf_spectacular.utils import extend_schema_field
from numpy.typing import NDArray
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api import operation
from common.errors import InvalidInput
from common.serializers import HelpfulSerializer
from common.sql import release_connection
from inference.interfaces import Embedder, EmptyText, InferenceError
from rag.errors import ModelFailed
from rag.openai.models import get_embedder
from rag.openai.protocol import MAX_CHARACTERS, MAX_TEXTS, NullMeansLeftOut, OpenAIView, TextsField

Vectors = NDArray[np.float32]

#: Models trained so that the first numbers of a vector say the most (Matryoshka representation
#: learning, https://arxiv.org/abs/2205.13147), by their names, from their model cards.
MATRYOSHKA = re.compile(
    r"text-embedding-3-(small|large)|qwen3-embedding|embeddinggemma|nomic-embed-text"
    r"|mxbai-embed-large|arctic-embed-(l-v2|m-v2|m-v1\.5)|jina-embeddings-v[34]|gte-multilingual",
    re.IGNORECASE,
)


def truncate_dimensions(vectors: Vectors, dimensions: int | None, *, model: str) -> Vectors:
    """The first `dimensions` numbers of each, normalized to length 1. Raises InvalidInput if the
    model's vectors cannot be truncated or are shorter."""
    full_size = vectors.shape[1]
    if dimensions is None or dimensions == full_size:
        return vectors
    if dimensions > full_size or not MATRYOSHKA.search(model):
        message = (
            gettext("Vectors of “{model}” have at most {size} dimensions. Leave `dimensions` out.")
            if MATRYOSHKA.search(model)
            else gettext(
                "Vectors of “{model}” have {size} dimensions and cannot be truncated. Leave"
                " `dimensions` out."
            )
        )
        raise InvalidInput(message.format(model=model, size=full_size), field="dimensions")
    truncated = vectors[:, :dimensions]
    lengths = np.linalg.norm(truncated, axis=1, keepdims=True)
    if not lengths.all():
        raise InvalidInput(
            gettext(
                "The first {dimensions} numbers of a vector are all 0. Ask for more dimensions."
            ).format(dimensions=dimensions),
            field="dimensions",
        )
    cut: Vectors = truncated / lengths
    return cut


def encode_vector(vector: Vectors, form: Literal["float", "base64"]) -> list[float] | str:
    """A list of numbers, or base64 of little-endian float32."""
    if form == "base64":
        return b64encode(vector.astype("<f4").tobytes()).decode()
    numbers: list[float] = vector.tolist()
    return numbers


class OpenAIEmbeddingsRequestSerializer(NullMeansLeftOut, HelpfulSerializer):
    """Texts to embed, and the form of their vectors."""

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


class OpenAIEmbeddingSerializer(serializers.Serializer[Any]):
    """The vector of one text."""

    object = serializers.CharField(help_text="`embedding`.")
    index = serializers.IntegerField(help_text="Of its text in `input`.")
    embedding = VectorField(help_text="Numbers; with `base64`, a string.")
    tokens = serializers.IntegerField(help_text="Not OpenAI's: of this text, as the model counts.")


class OpenAIEmbeddingsUsageSerializer(serializers.Serializer[Any]):
    """Tokens as the model counts them."""

    prompt_tokens = serializers.IntegerField()
    total_tokens = serializers.IntegerField()


class OpenAIEmbeddingsSerializer(serializers.Serializer[Any]):
    """Vectors in the order of the texts."""

    object = serializers.CharField(help_text="`list`.")
    data = OpenAIEmbeddingSerializer(many=True)  # type: ignore[assignment]  # taken out by DRF
    model = serializers.CharField()
    usage = OpenAIEmbeddingsUsageSerializer()


class EmbeddingsView(OpenAIView):
    """`POST /v1/embeddings`: the vectors of one or more texts."""

    asks_model = True

    @operation(
        takes=OpenAIEmbeddingsRequestSerializer,
        gives=OpenAIEmbeddingsSerializer,
        operation_id="openai_embeddings",
    )
    def post(self, **body: Any) -> Response:
        """Embed texts as OpenAI does."""
        name, embedder = get_embedder(body["model"])
        release_connection()
        vectors, counts = embed_texts(
            embedder, body["input"], as_query=bool(body["input_type"] == "query")
        )
        vectors = truncate_dimensions(vectors, body.get("dimensions"), model=embedder.model_name)
        form = body["encoding_format"]
        rows = [
            {
                "object": "embedding",
                "index": at,
                "embedding": encode_vector(vector, form),
                "tokens": count,
            }
            for at, (vector, count) in enumerate(zip(vectors, counts, strict=True))
        ]
        usage = {"prompt_tokens": sum(counts), "total_tokens": sum(counts)}
        return Response({"object": "list", "data": rows, "model": name, "usage": usage})


def embed_texts(
    embedder: Embedder, texts: list[str], *, as_query: bool
) -> tuple[Vectors, list[int]]:
    """Vectors of shape (len(texts), dimensions), and the number of tokens. Raises ModelFailed, and
    InvalidInput for an empty text."""
    try:
        counter = embedder.token_counter()
        counts = [counter.count(text) for text in texts]
        if not as_query:
            vectors: Vectors = embedder.embed_documents(texts)
        elif together := getattr(embedder, "embed_queries", None):
            vectors = together(texts)
        else:
            vectors = np.stack([embedder.embed_query(text) for text in texts])
    except EmptyText as error:
        raise InvalidInput(
            gettext("Text {index} has no content to embed. Leave it out.").format(
                index=error.index
            ),
            field="input",
        ) from error
    except InferenceError as error:
        raise ModelFailed(error) from error
    return vectors, counts
