"""Local models that a worker has in memory already: it is asked, and only without one is the model
loaded in this process too. `ModelRegistry` wraps local backends in these.
"""

from collections.abc import Callable, Sequence
from functools import cached_property
from time import monotonic, sleep
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.backends.worker import WorkerEmbedder, WorkerReranker, WorkerTokenEncoder
from inference.interfaces import Embedder, Reranker, TokenCounter, TokenEncoder, TokenStates
from inference.serving import protocol
from inference.serving.client import NoWorker, WorkerClient

T = TypeVar("T")

# Large models are slow on a processor, and a dead worker is noticed long before.
SHARED_DOCUMENTS_SECONDS = 3600.0
# Seconds between checks for the worker that is waited for.
_POLL_SECONDS = 0.2


class LazyModelProtocol(Protocol):
    """A model that is loaded on first use."""

    @property
    def is_loaded(self) -> bool: ...


class LoadableEmbedder(Embedder, LazyModelProtocol, Protocol): ...


class LoadableReranker(Reranker, LazyModelProtocol, Protocol):
    @property
    def model_name(self) -> str: ...


class LoadableTokenEncoder(TokenEncoder, LazyModelProtocol, Protocol): ...


class SharedModel:
    """A local model that is asked of a worker where one has it in memory.

    Where no worker serves the model for `patience` seconds, it is loaded here, and used here from
    then on. A model that cannot be loaded either is waited for only once.
    """

    def __init__(self, own: LazyModelProtocol, *, patience: float) -> None:
        self._loadable = own
        self._patience = patience
        self._is_patient = True

    def _answer(self, ask: Callable[[], T], do: Callable[[], T]) -> T:
        """The worker's result, or else that of this process."""
        until = monotonic() + (self._patience if self._is_patient else 0.0)
        while not self._loadable.is_loaded:
            try:
                answer = ask()
            except NoWorker:
                if monotonic() >= until:
                    self._is_patient = False
                    break
                sleep(_POLL_SECONDS)
            else:
                self._is_patient = True
                return answer
        return do()


class SharedEmbedder(SharedModel):
    """Work that needs only the model folder's JSON files, such as counting tokens, is done here."""

    def __init__(
        self, own: LoadableEmbedder, url: str, *, alias: str, patience: float = 0.0
    ) -> None:
        """`url` is the broker's; `patience` is 0 where no worker is about to start."""
        super().__init__(own, patience=patience)
        self._own = own
        self._url = url
        self._alias = alias

    @property
    def is_ready(self) -> bool:
        """Whether a query can be embedded without loading a model."""
        service = protocol.embedder_service(self.model_name, self.dimensions)
        return self._own.is_loaded or WorkerClient(self._url).is_served(service)

    @property
    def dimensions(self) -> int:
        return self._own.dimensions

    @property
    def model_name(self) -> str:
        return self._own.model_name

    @property
    def max_tokens(self) -> int:
        return self._own.max_tokens

    def token_counter(self) -> TokenCounter:
        return self._own.token_counter()

    def embed_documents(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Shape (len(texts), dimensions), L2-normalised. Raises InferenceError."""
        return self._answer(
            lambda: self._worker.embed_documents(texts), lambda: self._own.embed_documents(texts)
        )

    def embed_query(self, text: str, instruction: str | None = None) -> NDArray[np.float32]:
        """One vector of shape (dimensions,). Raises InferenceError."""
        return self._answer(
            lambda: self._worker.embed_query(text, instruction),
            lambda: self._own.embed_query(text, instruction),
        )

    @property
    def compares_tokens(self) -> bool:
        """Whether `compare` can be asked."""
        return bool(getattr(self._own, "compares_tokens", False))

    def compare(
        self, query: str, texts: Sequence[str], instruction: str | None = None
    ) -> NDArray[np.float32]:
        """Shape (len(texts), 2), as `TransformersEmbedder.compare`. Raises InferenceError."""
        own: Any = self._own
        compared: NDArray[np.float32] = self._answer(
            lambda: self._worker.compare(query, texts, instruction),
            lambda: own.compare(query, texts, instruction),
        )
        return compared

    @cached_property
    def _worker(self) -> WorkerEmbedder:
        return WorkerEmbedder(
            self._url,
            alias=self._alias,
            documents_timeout=SHARED_DOCUMENTS_SECONDS,
            model_name=self.model_name,
            dimensions=self.dimensions,
            max_tokens=self.max_tokens,
        )


class SharedReranker(SharedModel):
    """Reranks with a worker's model, or with one loaded here."""

    def __init__(
        self, own: LoadableReranker, url: str, *, alias: str, patience: float = 0.0
    ) -> None:
        super().__init__(own, patience=patience)
        self._own = own
        self._worker = WorkerReranker(url, alias=alias)

    @property
    def model_name(self) -> str:
        return self._own.model_name

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """Scores as of the model itself. Raises InferenceError."""
        return self._answer(
            lambda: self._worker.score(query, texts, stored=stored, instruction=instruction),
            lambda: self._own.score(query, texts, stored=stored, instruction=instruction),
        )


class SharedTokenEncoder(SharedModel):
    """Encodes tokens with a worker's model, or with one loaded here."""

    def __init__(
        self, own: LoadableTokenEncoder, url: str, *, alias: str, patience: float = 0.0
    ) -> None:
        super().__init__(own, patience=patience)
        self._own = own
        self._url = url
        self._alias = alias

    @property
    def model_name(self) -> str:
        return self._own.model_name

    @property
    def dimensions(self) -> int:
        return self._own.dimensions

    def encode_documents(self, texts: Sequence[str]) -> list[TokenStates]:
        """As of the model itself. Raises InferenceError."""
        return self._answer(
            lambda: self._worker.encode_documents(texts), lambda: self._own.encode_documents(texts)
        )

    def encode_query(self, text: str) -> NDArray[np.float32]:
        """As of the model itself. Raises InferenceError."""
        return self._answer(
            lambda: self._worker.encode_query(text), lambda: self._own.encode_query(text)
        )

    @cached_property
    def _worker(self) -> WorkerTokenEncoder:
        return WorkerTokenEncoder(
            self._url, alias=self._alias, model_name=self.model_name, dimensions=self.dimensions
        )
