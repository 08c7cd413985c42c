"""What a worker offers: a model that works, what it is, and how its questions are answered."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from inference.base import Embedder, Reranker
from inference.serving import keys
from inference.serving.announcements import Description, encode_tokenizer
from inference.serving.answers import answer_documents, answer_judgement, answer_queries
from inference.serving.keys import Service
from inference.serving.questions import Documents, Judgement, Query

#: So many queries are embedded at once where so many wait.
QUERIES_AT_ONCE = 32


@dataclass(frozen=True, slots=True)
class Lane:
    """Questions of one kind, which wait for each other and for none of another kind."""

    answer: Callable[[Sequence[bytes]], list[bytes]]
    at_once: int = 1


@dataclass(frozen=True, slots=True)
class Offer:
    """`left` is kept in the broker for whoever asks, also while no worker is there."""

    service: Service
    lanes: Mapping[str, Lane]
    left: Mapping[str, bytes]


def offer_embedder(
    alias: str, embedder: Embedder, *, queries_at_once: int = QUERIES_AT_ONCE
) -> Offer:
    """Raises InferenceError for an embedder that does not work."""
    embedder.embed_query("warm up")
    described = Description(
        model_name=embedder.model_name,
        dimensions=embedder.dimensions,
        max_tokens=embedder.max_tokens,
    )
    service = keys.embedder_service(described.model_name, described.dimensions)
    return Offer(
        service,
        lanes={
            Query.KIND: Lane(partial(answer_queries, embedder), queries_at_once),
            Documents.KIND: _one_by_one(partial(answer_documents, embedder)),
        },
        left={
            keys.description(alias): described.encode(),
            service.tokenizer: encode_tokenizer(embedder.token_counter().tokenizer),
        },
    )


def offer_reranker(alias: str, reranker: Reranker) -> Offer:
    """Raises InferenceError for a reranker that does not work."""
    reranker.score("warm up", ["warm up"], stored=[1.0])
    lane = _one_by_one(partial(answer_judgement, reranker))
    return Offer(keys.reranker_service(alias), lanes={Judgement.KIND: lane}, left={})


def _one_by_one(answer: Callable[[bytes], bytes]) -> Lane:
    return Lane(lambda questions: [answer(question) for question in questions])
