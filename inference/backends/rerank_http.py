"""Reranking by a server: vLLM, llama.cpp, Infinity, Jina and others that speak the same."""

import time
from collections.abc import Sequence
from functools import partial
from math import exp, isfinite
from threading import Event
from typing import Any

from inference.base import InvalidScore, MalformedAnswer
from inference.remote.address import versioned
from inference.remote.client import JsonClient
from inference.remote.pace import quick
from inference.remote.pieces import ask_in_pieces, at_once
from inference.texts import sendable

ROUNDING = 1e-3  # how far a probability may be off 0..1 and still be one
OMITTED_BELOW = 1e-6  # what a listed text scores at least where others were left out


class HttpReranker:
    """`POST {base}/v1/rerank`; texts that the answer leaves out come last, in the order given.

    There is no agreed field for an instruction, so none is sent: set it up with the server's model.
    A text too long for the server is judged in parts and has the best part's score.
    """

    def __init__(
        self,
        model: str,
        base_url: str,
        *,
        api_key: str | None = None,
        logits: bool | None = None,
        batch_size: int = 32,
        parallel: int = 4,
        timeout: float = 30.0,
    ) -> None:
        """`timeout` is in seconds and for everything, tries and batches together.

        `logits`: whether the server sends unbounded scores, to be brought into 0..1 by a sigmoid;
        None looks whether a score of the query lies outside 0..1. Say it where scores of several
        queries are compared. Raises BackendUnavailable.
        """
        self._model = model
        self._client = JsonClient(versioned(base_url), api_key=api_key)
        self._logits = logits
        self._batch_size = batch_size
        self._parallel = parallel
        self._timeout = timeout

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """Raises InferenceError."""
        patience = quick(self._timeout)
        deadline = time.monotonic() + self._timeout
        query, *texts = (sendable(text) for text in (query, *texts))

        def ask(batch: Sequence[str], cancelled: Event) -> list[list[tuple[str, float | None]]]:
            post = partial(
                self._ask, query, patience=patience, deadline=deadline, cancelled=cancelled
            )
            return ask_in_pieces(batch, post)

        starts = range(0, len(texts), self._batch_size)
        batches = [texts[start : start + self._batch_size] for start in starts]
        answers = at_once(ask, batches, parallel=self._parallel)
        return self._settled([_best(pieces) for answer in answers for pieces in answer])

    def _ask(self, query: str, texts: Sequence[str], **how: Any) -> list[float | None]:
        payload = {
            "model": self._model,
            "query": query,
            "documents": list(texts),
            "top_n": len(texts),
        }
        answer = self._client.post("/rerank", payload, **how)
        scores: list[float | None] = [None] * len(texts)
        for item in _items(answer):
            index = item.get("index")
            if type(index) is not int or not 0 <= index < len(texts) or scores[index] is not None:
                raise MalformedAnswer(
                    f"{len(texts)} texts were sent, and the answer's index {index!r} is none of"
                    " them or comes twice: set a smaller batch_size, or update the server."
                )
            scores[index] = _score(item)
        return scores

    def _settled(self, scores: Sequence[float | None]) -> list[float]:
        """In 0..1, with those left out at 0 and below all others."""
        listed = [score for score in scores if score is not None]
        if self._logits or (self._logits is None and not all(map(_is_probability, listed))):
            scores = [None if score is None else _sigmoid(score) for score in scores]
        floor = OMITTED_BELOW if len(listed) < len(scores) else 0.0
        return [
            0.0 if score is None else floor + (1 - floor) * min(1.0, max(0.0, score))
            for score in scores
        ]


def _items(answer: Any) -> list[dict[str, Any]]:
    items = answer.get("results", answer.get("data")) if isinstance(answer, dict) else None
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise MalformedAnswer(
            "the answer holds neither `results` nor `data`: is base_url that of a server with"
            " /v1/rerank?"
        )
    return items


def _score(item: dict[str, Any]) -> float:
    score = item.get("relevance_score", item.get("score"))
    if isinstance(score, bool | str | list | dict):
        raise MalformedAnswer(f"the score {str(score)[:50]!r} is no number: update the server.")
    if score is None or not isfinite(score):
        raise InvalidScore(
            f"text {item['index']} has the score {score}, by which nothing can be sorted: run the"
            " server's model in float32."
        )
    return float(score)


def _best(pieces: Sequence[tuple[str, float | None]]) -> float | None:
    return max((score for _, score in pieces if score is not None), default=None)


def _is_probability(score: float) -> bool:
    return -ROUNDING <= score <= 1 + ROUNDING


def _sigmoid(score: float) -> float:
    # exp of a large number overflows; of a large negative one it is just 0.
    return 1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score))
