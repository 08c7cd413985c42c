"""What embedders behind HTTP share: prompts, windows, batches, and vectors out of their answers."""

import time
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from functools import partial
from itertools import pairwise
from math import inf
from threading import Event
from typing import Any

import numpy as np
from numpy.typing import NDArray

from inference.base import (
    BackendUnavailable,
    DimensionMismatch,
    InvalidVector,
    MalformedAnswer,
    TokenCounter,
)
from inference.remote.client import JsonClient
from inference.remote.models import RemoteModel
from inference.remote.pace import Pace
from inference.remote.patience import Patience
from inference.remote.pieces import ask_in_pieces, at_once, halve
from inference.remote.tokens import token_counter
from inference.texts import check_texts
from inference.vectors import averaged, check_vectors, normalised

Vector = NDArray[np.float32]


class RemoteEmbedder(ABC):
    """Embeds over HTTP; a subclass says what is asked and where the vectors stand in the answer.

    A text longer than `max_tokens` is never cut short. It is embedded in windows, each with the
    prompt before it, and its vector is the mean of theirs, weighted by tokens and normalised again.
    """

    path: str

    def __init__(
        self,
        client: JsonClient,
        model: RemoteModel,
        *,
        name: str,
        tokenizer: str | None,
        pace: Pace,
    ) -> None:
        self._client = client
        self._prompts = model.prompts
        self._pace = pace
        self.dimensions = model.dimensions
        self.model_name = name
        self._counter = _counter(tokenizer, model)
        self.max_tokens = self._counter.max_tokens

    @abstractmethod
    def _payload(self, texts: Sequence[str]) -> dict[str, object]:
        """What is posted to `path`."""

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
        self, prompt: str, texts: Sequence[str], patience: Patience, *, deadline: float
    ) -> Vector:
        check_texts(texts)
        if not texts:
            return np.empty((0, self.dimensions), dtype=np.float32)
        windows = [list(self._windows(text)) for text in texts]

        def ask(batch: Sequence[str], cancelled: Event) -> list[list[tuple[str, Vector]]]:
            post = partial(
                self._ask, prompt, patience=patience, deadline=deadline, cancelled=cancelled
            )
            return ask_in_pieces(batch, post)

        batches = self._batches([window for of_text in windows for window in of_text])
        answers = at_once(ask, batches, parallel=self._pace.parallel)
        pieces = [pieces for answer in answers for pieces in answer]
        return self._joined(pieces, [len(of_text) for of_text in windows])

    def _ask(self, prompt: str, texts: Sequence[str], **how: Any) -> list[Vector]:
        payload = self._payload([prompt + text for text in texts])
        rows = self._rows(self._client.post(self.path, payload, **how), len(texts))
        array = _array(rows, self.dimensions)
        return list(normalised(check_vectors(array, dimensions=self.dimensions)))

    def _joined(
        self, pieces: Sequence[Sequence[tuple[str, Vector]]], windows_of_text: Sequence[int]
    ) -> Vector:
        """`pieces` holds, for each window, the pieces that the server made us cut it into."""
        flat = [piece for of_window in pieces for piece in of_window]
        vectors = np.stack([vector for _, vector in flat])
        if len(flat) > len(windows_of_text):
            starts = np.cumsum([0, *windows_of_text])
            counts = [sum(map(len, pieces[start:end])) for start, end in pairwise(starts)]
            vectors = averaged(vectors, [self._weight(text) for text, _ in flat], counts)
        return check_vectors(vectors, dimensions=self.dimensions)

    def _weight(self, text: str) -> int:
        return max(1, self._counter.count(text))

    def _windows(self, text: str) -> Iterator[str]:
        """`text` in consecutive parts of like length that the model can read; mostly itself."""
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


def _counter(tokenizer: str | None, model: RemoteModel) -> TokenCounter:
    """Counts for `model`, with room left for what is put before each document."""
    counter = token_counter(tokenizer, max_tokens=model.max_tokens)
    if not model.prompts.document:
        return counter
    room = model.max_tokens - counter.count(model.prompts.document)
    if room < 1:
        raise BackendUnavailable(
            f"document_prompt leaves no room in {model.max_tokens} tokens: shorten it or raise"
            " OPTIONS['max_tokens']."
        )
    return token_counter(tokenizer, max_tokens=room)


def _array(rows: Sequence[Any], dimensions: int) -> Vector:
    array = np.empty((len(rows), dimensions), dtype=np.float32)
    for index, row in enumerate(rows):
        if row is None:
            raise InvalidVector(f"vector {index} is null: ask the server's log why it made none.")
        if not isinstance(row, list) or any(isinstance(number, str | list) for number in row):
            raise MalformedAnswer(
                f"vector {index} is no list of numbers: set the server to answer with floats."
            )
        if len(row) != dimensions:
            raise DimensionMismatch(expected=dimensions, actual=len(row))
        with np.errstate(over="ignore"):  # infinite then, and refused as such
            array[index] = row
    return array
