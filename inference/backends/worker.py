"""Backends that ask a worker over the broker: this process needs no torch and holds no weights."""

import threading
from collections.abc import Iterator, Sequence
from itertools import pairwise
from math import isfinite
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.interfaces import (
    BackendUnavailable,
    EmptyText,
    InvalidScore,
    TokenCounter,
    TokenStates,
    check_texts,
)
from inference.local.bundled import ANSWERAI_COLBERT
from inference.serving import protocol
from inference.serving.client import START_WORKER, WorkerClient
from inference.tokens import CountedTokens, EstimatedTokens
from inference.vectors import check_vectors

KEEP_SECONDS = 60.0
# Limits of a request: enough for full batches, little enough to be in memory twice.
BATCH_TEXTS = 256
BATCH_CHARACTERS = 4_000_000


class WorkerEmbedder:
    """Embeds by asking a worker that consumes the `embed` queue, over the broker.

    Model name and dimensions are what the worker announced, or what OPTIONS say: then no other
    model is accepted, and no announcement is needed to start.
    """

    def __init__(
        self,
        url: str,
        *,
        alias: str = "default",
        timeout: float = 5.0,
        documents_timeout: float = 300.0,
        model_name: str | None = None,
        dimensions: int | None = None,
        max_tokens: int | None = None,
    ) -> None:
        """`alias` is what the embedder is called where the worker runs.

        Seconds: `timeout` of a query, `documents_timeout` of a batch of documents.
        """
        self._client = WorkerClient(url)
        self._alias = alias
        self._timeout = timeout
        self._documents_timeout = documents_timeout
        self._model_name = model_name
        self._dimensions = dimensions
        self._max_tokens = max_tokens
        self._announced: tuple[float, dict[str, Any]] | None = None
        self._counters: dict[str, TokenCounter] = {}
        self._counting = threading.Lock()

    @property
    def dimensions(self) -> int:
        return self._dimensions or self._description()["dimensions"]

    @property
    def model_name(self) -> str:
        return self._model_name or self._description()["model_name"]

    @property
    def max_tokens(self) -> int:
        return self._max_tokens or self._description()["max_tokens"]

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), L2-normalised. Raises InferenceError."""
        check_texts(texts)
        service, dimensions = self._service()
        vectors = np.empty((len(texts), dimensions), dtype=np.float32)
        for rows in _batches(texts):
            reply = self._client.ask(
                service, "documents", timeout=self._documents_timeout, texts=list(texts[rows])
            )
            shape = (rows.stop - rows.start, dimensions)
            try:
                vectors[rows] = protocol.decode_array(reply, protocol.VECTOR_DTYPE, shape=shape)
            except EmptyText as error:
                raise EmptyText(rows.start + error.index) from error
        return check_vectors(vectors, dimensions=dimensions)

    def embed_query(self, text: str, instruction: str | None = None) -> NDArray[np.float32]:
        """Shape (dimensions,). Queries of several processes are embedded together."""
        check_texts([text])
        service, dimensions = self._service()
        reply = self._client.ask(
            service, "query", timeout=self._timeout, text=text, instruction=instruction
        )
        vector = protocol.decode_array(reply, protocol.VECTOR_DTYPE, shape=(dimensions,))
        return check_vectors(vector, dimensions=dimensions)

    def compare(
        self, query: str, texts: Sequence[str], instruction: str | None = None
    ) -> NDArray[np.float32]:
        """Shape (len(texts), 2), as `TransformersEmbedder.compare`. Raises InferenceError, also
        where the worker's model compares no tokens."""
        check_texts([query, *texts])
        service, _ = self._service()
        reply = self._client.ask(
            service,
            "comparison",
            timeout=self._documents_timeout,
            query=query,
            texts=list(texts),
            instruction=instruction,
        )
        compared: NDArray[np.float32] = protocol.decode_array(
            reply, protocol.VECTOR_DTYPE, shape=(len(texts), 2)
        )
        return compared

    def token_counter(self) -> TokenCounter:
        """Counts with the model's own tokenizer, which a worker stored in the broker."""
        service, _ = self._service()
        with self._counting:
            if service in self._counters:
                return self._counters[service]
            data = self._client.read(protocol.tokenizer_key(service))
            if data is None:
                raise BackendUnavailable(
                    f"no worker has left the tokenizer of {service} yet: {START_WORKER}."
                )
            counter: TokenCounter = EstimatedTokens(self.max_tokens)
            if (tokenizer := protocol.decode_tokenizer(data)) is not None:
                counter = CountedTokens(tokenizer, self.max_tokens)
            self._counters[service] = counter
            return counter

    def _service(self) -> tuple[str, int]:
        dimensions = self.dimensions
        return protocol.embedder_service(self.model_name, dimensions), dimensions

    def _description(self) -> dict[str, Any]:
        """The worker's latest announcement, cached. Raises BackendUnavailable."""
        now = monotonic()
        if self._announced is None or now - self._announced[0] > KEEP_SECONDS:
            data = self._client.read(protocol.description_key(self._alias))
            if data is None:
                raise BackendUnavailable(
                    f"no worker has ever announced an embedder {self._alias!r}: {START_WORKER}. To"
                    " begin without one, set model_name, dimensions and max_tokens in OPTIONS."
                )
            described = protocol.decode_fields(data, protocol.DESCRIPTION)
            announced = described["model_name"], described["dimensions"]
            wanted = self._model_name or announced[0], self._dimensions or announced[1]
            if wanted != announced:
                raise BackendUnavailable(
                    f"the worker's embedder {self._alias!r} is {announced[0]} with {announced[1]}"
                    f" dimensions, OPTIONS say {wanted[0]} with {wanted[1]}: correct one of them."
                )
            self._announced = (now, described)
        return self._announced[1]


class WorkerReranker:
    """Reranks by asking a worker that consumes the `embed` queue, over the broker."""

    def __init__(self, url: str, *, alias: str = "default", timeout: float = 30.0) -> None:
        """`alias` is what the reranker is called where the worker runs. `timeout` in seconds."""
        self._client = WorkerClient(url)
        self._service = protocol.reranker_service(alias)
        self._timeout = timeout

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """Scores of the worker's reranker. Raises InferenceError."""
        if not texts:
            return []
        reply = self._client.ask(
            self._service,
            "judgement",
            timeout=self._timeout,
            query=query,
            texts=list(texts),
            stored=list(stored),
            instruction=instruction,
        )
        scores: list[float] = protocol.decode_array(
            reply, protocol.SCORE_DTYPE, shape=(len(texts),)
        ).tolist()
        if not all(map(isfinite, scores)):
            raise InvalidScore("a worker's score is NaN or infinite: see the log of the worker.")
        return scores


class WorkerTokenEncoder:
    """Encodes tokens by asking a worker that consumes the `embed` queue, over the broker."""

    def __init__(
        self,
        url: str,
        *,
        alias: str = "default",
        timeout: float = 5.0,
        documents_timeout: float = 60.0,
        model_name: str = ANSWERAI_COLBERT.name,
        dimensions: int = ANSWERAI_COLBERT.hidden_size,
    ) -> None:
        """`model_name` and `dimensions` are those of the worker's encoder, whatever its `alias`.

        Seconds: `timeout` of a query, `documents_timeout` of a batch of documents.
        """
        self._client = WorkerClient(url)
        self._service = protocol.token_encoder_service(model_name, dimensions)
        self._timeout = timeout
        self._documents_timeout = documents_timeout
        self.model_name = model_name
        self.dimensions = dimensions

    def encode_documents(self, texts: Sequence[str]) -> list[TokenStates]:
        """One for each text, in order. Raises InferenceError."""
        found = []
        for rows in _batches(texts):
            reply = self._client.ask(
                self._service,
                "token-documents",
                timeout=self._documents_timeout,
                texts=list(texts[rows]),
            )
            tokens = protocol.decode_rows(reply, protocol.token_dtype(self.dimensions))
            edges = np.searchsorted(tokens["text"], np.arange(rows.stop - rows.start + 1))
            for start, stop in pairwise(edges):
                of_text = tokens[start:stop]
                found.append(
                    TokenStates(
                        *(np.ascontiguousarray(of_text[name]) for name in ("bits", "start", "end"))
                    )
                )
        return found

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """Shape (tokens, dimensions), rows of length 1. Raises InferenceError."""
        check_texts([text])
        reply = self._client.ask(self._service, "token-query", timeout=self._timeout, text=text)
        row = np.dtype((protocol.VECTOR_DTYPE, (self.dimensions,)))
        return check_vectors(protocol.decode_rows(reply, row), dimensions=self.dimensions)


def _batches(texts: Sequence[str]) -> Iterator[slice]:
    """Consecutive slices of texts, each small enough to send at once; a longer text goes alone."""
    start = characters = 0
    for at, text in enumerate(texts):
        full = at - start == BATCH_TEXTS or characters + len(text) > BATCH_CHARACTERS
        if full and at > start:
            yield slice(start, at)
            start, characters = at, 0
        characters += len(text)
    if texts:
        yield slice(start, len(texts))
