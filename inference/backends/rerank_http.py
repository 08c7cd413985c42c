"""Reranking by a server with `/v1/rerank`: vLLM, llama.cpp, Infinity, Jina and others."""

import time
from collections.abc import Sequence
from functools import partial
from math import exp, isfinite
from threading import Event
from typing import Any

from inference.interfaces import InvalidScore, MalformedAnswer, replace_surrogates
from inference.remote.client import JsonClient, with_version
from inference.remote.retry import call_with_splits, quick_policy, run_parallel

ROUNDING = 1e-3  # how far a probability may be off 0..1 and still be one
MIN_LISTED_SCORE = 1e-6  # what a listed text scores at least where others were left out


class HttpReranker:
    """`POST {base}/v1/rerank`; texts missing in the answer come last, in the order given.

    There is no standard field for an instruction, so none is sent. A text too long for the server
    is scored in parts and gets the best part's score.
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
        self.model_name = model
        self._client = JsonClient(with_version(base_url), api_key=api_key)
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
        """A score in 0..1 for each text, in order. Raises InferenceError."""
        patience = quick_policy(self._timeout)
        deadline = time.monotonic() + self._timeout
        query, *texts = (replace_surrogates(text) for text in (query, *texts))

        def ask(batch: Sequence[str], cancelled: Event) -> list[list[tuple[str, float | None]]]:
            post = partial(
                self._ask, query, patience=patience, deadline=deadline, cancelled=cancelled
            )
            return call_with_splits(batch, post)

        starts = range(0, len(texts), self._batch_size)
        batches = [texts[start : start + self._batch_size] for start in starts]
        answers = run_parallel(ask, batches, parallel=self._parallel)
        return self._settled(
            [
                max((score for _, score in pieces if score is not None), default=None)
                for answer in answers
                for pieces in answer
            ]
        )

    def _ask(self, query: str, texts: Sequence[str], **how: Any) -> list[float | None]:
        payload = {
            "model": self.model_name,
            "query": query,
            "documents": list(texts),
            "top_n": len(texts),
        }
        answer = self._client.post("/rerank", payload, **how)
        items = answer.get("results", answer.get("data")) if isinstance(answer, dict) else None
        if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
            raise MalformedAnswer(
                "the answer holds neither `results` nor `data`: is base_url that of a server with"
                " /v1/rerank?"
            )
        scores: list[float | None] = [None] * len(texts)
        for item in items:
            index = item.get("index")
            if type(index) is not int or not 0 <= index < len(texts) or scores[index] is not None:
                raise MalformedAnswer(
                    f"{len(texts)} texts were sent, and the answer's index {index!r} is none of"
                    " them or comes twice: set a smaller batch_size, or update the server."
                )
            score = item.get("relevance_score", item.get("score"))
            if isinstance(score, bool | str | list | dict):
                raise MalformedAnswer(
                    f"the score {str(score)[:50]!r} is no number: update the server."
                )
            if score is None or not isfinite(score):
                raise InvalidScore(
                    f"text {index} has the score {score}, by which nothing can be sorted: run the"
                    " server's model in float32."
                )
            scores[index] = float(score)
        return scores

    def _settled(self, scores: Sequence[float | None]) -> list[float]:
        """Scores in 0..1, with missing ones at 0 and below all others."""
        listed = [score for score in scores if score is not None]
        logits = self._logits
        if logits is None:
            logits = not all(-ROUNDING <= score <= 1 + ROUNDING for score in listed)
        if logits:
            scores = [
                None
                if score is None
                else (1 / (1 + exp(-score)) if score >= 0 else exp(score) / (1 + exp(score)))
                for score in scores
            ]
        floor = MIN_LISTED_SCORE if len(listed) < len(scores) else 0.0
        return [
            0.0 if score is None else floor + (1 - floor) * min(1.0, max(0.0, score))
            for score in scores
        ]
