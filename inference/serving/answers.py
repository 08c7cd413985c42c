"""From questions to replies: what a worker does with the models that it has. Nothing raises."""

import logging
from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from inference.base import BackendUnavailable, Embedder, InferenceError, MalformedAnswer, Reranker
from inference.serving import replies
from inference.serving.questions import Documents, Judgement, Query

logger = logging.getLogger(__name__)


def answer_queries(embedder: Embedder, questions: Sequence[bytes]) -> list[bytes]:
    """Queries under one instruction are embedded together; one that cannot be fails alone."""
    answers: dict[int, bytes] = {}
    queries: dict[int, Query] = {}
    for at, question in enumerate(questions):
        try:
            queries[at] = Query.decode(question)
        except MalformedAnswer as error:
            answers[at] = replies.encode_error(error)

    def instruction(at: int) -> str:
        return queries[at].instruction or ""

    for _, group in groupby(sorted(queries, key=instruction), key=instruction):
        together = list(group)
        vectors = _answer_together(embedder, [queries[at] for at in together])
        answers.update(zip(together, vectors, strict=True))
    return [answers[at] for at in range(len(questions))]


def answer_documents(embedder: Embedder, question: bytes) -> bytes:
    try:
        vectors = embedder.embed_documents(Documents.decode(question).texts)
        return replies.encode(vectors, replies.VECTOR)
    except Exception as error:
        return _failed(error)


def answer_judgement(reranker: Reranker, question: bytes) -> bytes:
    try:
        asked = Judgement.decode(question)
        scores = reranker.score(
            asked.query, asked.texts, stored=asked.stored, instruction=asked.instruction
        )
        return replies.encode(scores, replies.SCORE)
    except Exception as error:
        return _failed(error)


def _answer_together(embedder: Embedder, queries: Sequence[Query]) -> list[bytes]:
    texts, instruction = [query.text for query in queries], queries[0].instruction
    try:
        vectors = _embed_queries(embedder, texts, instruction)
        return [replies.encode(vector, replies.VECTOR) for vector in vectors]
    except BackendUnavailable as error:
        return [replies.encode_error(error)] * len(queries)
    except Exception as error:
        if len(queries) == 1:
            return [_failed(error)]
        return [answer for query in queries for answer in _answer_together(embedder, [query])]


def _embed_queries(
    embedder: Embedder, texts: Sequence[str], instruction: str | None
) -> NDArray[np.float32]:
    together = getattr(embedder, "embed_queries", None)
    if together is None:
        return np.stack([embedder.embed_query(text, instruction) for text in texts])
    vectors: NDArray[np.float32] = together(texts, instruction)
    return vectors


def _failed(error: Exception) -> bytes:
    """Whatever went wrong is told to who asked; what no backend should raise is logged too."""
    if isinstance(error, InferenceError):
        return replies.encode_error(error)
    logger.error("a model failed", exc_info=error)
    return replies.encode_error(
        BackendUnavailable(
            f"the worker's model failed with {type(error).__name__}: {error}. Its log says more."
        )
    )
