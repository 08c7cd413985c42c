"""Models that live in a worker's process: this one needs no torch and holds no weights."""

import threading
from collections.abc import Iterator, Sequence
from math import isfinite
from time import monotonic

import numpy as np
from numpy.typing import NDArray

from inference.base import BackendUnavailable, EmptyText, InvalidScore, TokenCounter
from inference.remote.tokens import CountedTokens, EstimatedTokens
from inference.serving import keys, replies
from inference.serving.announcements import Description, decode_tokenizer
from inference.serving.client import START, Client
from inference.serving.keys import Service
from inference.serving.questions import Documents, Judgement, Query
from inference.texts import check_texts
from inference.vectors import check_vectors

KEEP_SECONDS = 60.0
# What a question may carry: enough for full batches, little enough to be in memory twice.
BATCH_TEXTS = 256
BATCH_CHARACTERS = 4_000_000


class WorkerEmbedder:
    """Has a worker that consumes the `embed` queue embed, over the broker.

    What the model is called and how long its vectors are is what the worker announced, or what
    OPTIONS say: then no other model is ever taken, and nothing need be announced to start.
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
        self._client = Client(url)
        self._alias = alias
        self._timeout = timeout
        self._documents_timeout = documents_timeout
        self._model_name = model_name
        self._dimensions = dimensions
        self._max_tokens = max_tokens
        self._announced: tuple[float, Description] | None = None
        self._counters: dict[Service, TokenCounter] = {}
        self._counting = threading.Lock()

    @property
    def dimensions(self) -> int:
        return self._dimensions or self._description().dimensions

    @property
    def model_name(self) -> str:
        return self._model_name or self._description().model_name

    @property
    def max_tokens(self) -> int:
        return self._max_tokens or self._description().max_tokens

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), L2-normalised. Raises InferenceError."""
        check_texts(texts)
        service, dimensions = self._service()
        vectors = np.empty((len(texts), dimensions), dtype=np.float32)
        for rows in _batches(texts):
            question = Documents(texts[rows])
            reply = self._client.ask(service, question, timeout=self._documents_timeout)
            shape = (len(question.texts), dimensions)
            try:
                vectors[rows] = replies.decode(reply, replies.VECTOR, shape=shape)
            except EmptyText as error:
                raise EmptyText(rows.start + error.index) from error
        return check_vectors(vectors, dimensions=dimensions)

    def embed_query(self, text: str, instruction: str | None = None) -> NDArray[np.float32]:
        """Shape (dimensions,). Queries of several processes are embedded together."""
        check_texts([text])
        service, dimensions = self._service()
        reply = self._client.ask(service, Query(text, instruction), timeout=self._timeout)
        vector = replies.decode(reply, replies.VECTOR, shape=(dimensions,))
        return check_vectors(vector, dimensions=dimensions)

    def token_counter(self) -> TokenCounter:
        """Counts with the model's own tokenizer, which a worker left in the broker."""
        service, _ = self._service()
        with self._counting:
            if service not in self._counters:
                self._counters[service] = self._read_counter(service)
            return self._counters[service]

    def _service(self) -> tuple[Service, int]:
        dimensions = self.dimensions
        return keys.embedder_service(self.model_name, dimensions), dimensions

    def _description(self) -> Description:
        """What a worker announced of late. Raises BackendUnavailable."""
        now = monotonic()
        if self._announced is None or now - self._announced[0] > KEEP_SECONDS:
            self._announced = (now, self._read_description())
        return self._announced[1]

    def _read_description(self) -> Description:
        data = self._client.read(keys.description(self._alias))
        if data is None:
            raise BackendUnavailable(
                f"no worker has ever announced an embedder {self._alias!r}: {START}. To begin"
                " without one, set model_name, dimensions and max_tokens in OPTIONS."
            )
        announced = Description.decode(data)
        ours = (self._model_name or announced.model_name, self._dimensions or announced.dimensions)
        if ours != (announced.model_name, announced.dimensions):
            raise BackendUnavailable(
                f"the worker's embedder {self._alias!r} is {announced.model_name} with"
                f" {announced.dimensions} dimensions, OPTIONS say {ours[0]} with {ours[1]}:"
                " correct one of them."
            )
        return announced

    def _read_counter(self, service: Service) -> TokenCounter:
        data = self._client.read(service.tokenizer)
        if data is None:
            raise BackendUnavailable(
                f"no worker has left the tokenizer of {service.name} yet: {START}."
            )
        tokenizer = decode_tokenizer(data)
        if tokenizer is None:
            return EstimatedTokens(self.max_tokens)
        return CountedTokens(tokenizer, self.max_tokens)


class WorkerReranker:
    """Has a worker that consumes the `embed` queue judge texts, over the broker."""

    def __init__(self, url: str, *, alias: str = "default", timeout: float = 30.0) -> None:
        """`alias` is what the reranker is called where the worker runs. `timeout` in seconds."""
        self._client = Client(url)
        self._service = keys.reranker_service(alias)
        self._timeout = timeout

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """As the worker's reranker scores. Raises InferenceError."""
        if not texts:
            return []
        question = Judgement(query, texts, stored, instruction)
        reply = self._client.ask(self._service, question, timeout=self._timeout)
        scores: list[float] = replies.decode(reply, replies.SCORE, shape=(len(texts),)).tolist()
        if not all(map(isfinite, scores)):
            raise InvalidScore("a worker's score is NaN or infinite: see the log of the worker.")
        return scores


def _batches(texts: Sequence[str]) -> Iterator[slice]:
    """Consecutive runs of texts, each of a size to send at once; a longer text goes alone."""
    start = characters = 0
    for at, text in enumerate(texts):
        full = at - start == BATCH_TEXTS or characters + len(text) > BATCH_CHARACTERS
        if full and at > start:
            yield slice(start, at)
            start, characters = at, 0
        characters += len(text)
    if texts:
        yield slice(start, len(texts))
