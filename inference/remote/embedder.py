"""Base of embedders behind HTTP: known models, prompts, windows, batches, vectors in answers."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from math import inf
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.interfaces import (
    BackendUnavailable,
    DimensionMismatch,
    InvalidVector,
    MalformedAnswer,
    TokenCounter,
    check_texts,
)
from inference.local.model_folder import Prompts
from inference.remote.client import JsonClient
from inference.remote.retry import RequestLimits, RetryPolicy, call_with_splits, halve, run_parallel
from inference.tokens import token_counter
from inference.vectors import check_vectors, normalized, weighted_means

# A BERT's window without its two special tokens, which fits most models that servers run.
DEFAULT_MAX_TOKENS = 510


@dataclass(frozen=True, slots=True)
class RemoteModel:
    """Properties of a known model: dimensions, window, prompts."""

    dimensions: int
    max_tokens: int  # special tokens not counted
    prompts: Prompts = field(default_factory=Prompts)


def dimensions_field(
    known: RemoteModel | None, dimensions: int | None, *, send: bool | None
) -> dict[str, int]:
    """The request's field `dimensions`, which shortens vectors, or nothing.

    Many servers reject unknown fields, so it is sent only for known models where it makes a
    difference, unless `send` decides.
    """
    if send is None:
        send = known is not None and dimensions not in {None, known.dimensions}
    length = dimensions or (known.dimensions if known else None)
    return {"dimensions": length} if send and length else {}


Vector = NDArray[np.float32]


class RemoteEmbedder(ABC):
    """Embeds over HTTP; a subclass builds the request and finds the vectors in the answer.

    A text longer than `max_tokens` is not truncated. It is embedded in windows, each with the
    prompt, and its vector is their mean, weighted by tokens and normalised again.
    """

    path: str

    def __init__(
        self,
        client: JsonClient,
        model: str,
        *,
        known: RemoteModel | None,
        name: str | None,
        dimensions: int | None,
        max_tokens: int | None,
        document_prompt: str | None,
        query_prompt: str | None,
        tokenizer: str | None,
        limits: RequestLimits,
    ) -> None:
        """`known` holds for what the options leave out. Raises BackendUnavailable."""
        if dimensions is not None and dimensions < 1:
            raise BackendUnavailable(f"OPTIONS['dimensions'] is {dimensions}: it must be above 0.")
        if not dimensions and not known:
            raise BackendUnavailable(
                f"the length of the vectors of {model!r} is not known here: set"
                " OPTIONS['dimensions'] to what its card or its server says."
            )
        known = known or RemoteModel(0, DEFAULT_MAX_TOKENS)
        self._client = client
        self._pace = limits
        self._prompts = Prompts(
            document=known.prompts.document if document_prompt is None else document_prompt,
            query=known.prompts.query if query_prompt is None else query_prompt,
        )
        self.dimensions = dimensions or known.dimensions
        self.model_name = name or model
        self.window = max_tokens or known.max_tokens
        self._counter = token_counter(tokenizer, max_tokens=self.window)
        if self._prompts.document:  # which takes room from each text
            room = self.window - self._counter.count(self._prompts.document)
            if room < 1:
                raise BackendUnavailable(
                    f"document_prompt leaves no room in {self.window} tokens: shorten it or raise"
                    " OPTIONS['max_tokens']."
                )
            self._counter = token_counter(tokenizer, max_tokens=room)
        self.max_tokens = self._counter.max_tokens

    @abstractmethod
    def _payload(self, texts: Sequence[str]) -> dict[str, object]:
        """The JSON body posted to `path`."""

    @abstractmethod
    def _rows(self, answer: Any, count: int) -> list[Any]:
        """One row of numbers for each text, in order. Raises MalformedAnswer."""

    def token_counter(self) -> TokenCounter:
        return self._counter

    def embed_documents(self, texts: Sequence[str]) -> Vector:
        """Shape (len(texts), dimensions), L2-normalised. Raises InferenceError."""
        return self._embed(self._prompts.document, texts, self._pace.for_documents(), deadline=inf)

    def embed_query(self, text: str, instruction: str | None = None) -> Vector:
        """Shape (dimensions,). `instruction` takes the place of the query prompt."""
        vector: Vector = self.embed_queries([text], instruction)[0]
        return vector

    def embed_queries(self, texts: Sequence[str], instruction: str | None = None) -> Vector:
        """Shape (len(texts), dimensions): several queries under one instruction."""
        deadline = time.monotonic() + self._pace.query_timeout
        prompt = self._prompts.for_query(instruction)
        return self._embed(prompt, texts, self._pace.for_query(), deadline=deadline)

    def _embed(
        self, prompt: str, texts: Sequence[str], patience: RetryPolicy, *, deadline: float
    ) -> Vector:
        check_texts(texts)
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        windows = [list(self._windows(text)) for text in texts]

        def ask(batch: Sequence[str], cancelled: Event) -> list[list[tuple[str, Vector]]]:
            post = partial(
                self._ask, prompt, patience=patience, deadline=deadline, cancelled=cancelled
            )
            return call_with_splits(batch, post)

        batches = self._batches([window for of_text in windows for window in of_text])
        answers = run_parallel(ask, batches, parallel=self._pace.parallel)
        pieces = [pieces for answer in answers for pieces in answer]
        # `pieces` holds, for each window, the pieces that the server's limit forced.
        windows_of_text = [len(of_text) for of_text in windows]
        flat = [piece for of_window in pieces for piece in of_window]
        vectors = np.stack([vector for _, vector in flat])
        if len(flat) > len(windows_of_text):
            starts = np.cumsum([0, *windows_of_text])
            counts = [sum(map(len, pieces[start:end])) for start, end in pairwise(starts)]
            vectors = weighted_means(vectors, [self._weight(text) for text, _ in flat], counts)
        return check_vectors(vectors, dimensions=self.dimensions)

    def _ask(self, prompt: str, texts: Sequence[str], **how: Any) -> list[Vector]:
        payload = self._payload([prompt + text for text in texts])
        rows = self._rows(self._client.post(self.path, payload, **how), len(texts))
        array = np.empty((len(rows), self.dimensions), dtype=np.float32)
        for index, row in enumerate(rows):
            if row is None:
                raise InvalidVector(
                    f"vector {index} is null: ask the server's log why it made none."
                )
            if not isinstance(row, list) or any(isinstance(number, str | list) for number in row):
                raise MalformedAnswer(
                    f"vector {index} is no list of numbers: set the server to answer with floats."
                )
            if len(row) != self.dimensions:
                raise DimensionMismatch(expected=self.dimensions, actual=len(row))
            with np.errstate(over="ignore"):  # infinite then, and refused as such
                array[index] = row
        return list(normalized(check_vectors(array, dimensions=self.dimensions)))

    def _weight(self, text: str) -> int:
        return max(1, self._counter.count(text))

    def _windows(self, text: str) -> Iterator[str]:
        """`text` in consecutive parts of similar length that fit the model; mostly itself."""
        halves = halve(text) if self._counter.count(text) > self.max_tokens else []
        if len(halves) < 2:
            yield text
            return
        for half in halves:
            yield from self._windows(half)

    def _batches(self, windows: Sequence[str]) -> list[list[str]]:
        batches: list[list[str]] = []
        room = 0
        for window in windows:
            tokens = self._weight(window)
            if tokens > room or len(batches[-1]) == self._pace.batch_size:
                batches.append([])
                room = max(self._pace.batch_tokens, tokens)
            batches[-1].append(window)
            room -= tokens
        return batches
