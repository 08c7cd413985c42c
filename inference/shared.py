"""Local models that a worker has in memory already: it is asked, and only where there is none is a
model loaded by this process too. `InferenceHandler` puts these before backends that load."""

from collections.abc import Callable, Sequence
from functools import cached_property
from time import monotonic, sleep
from typing import Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from inference.backends.worker import WorkerEmbedder, WorkerReranker
from inference.base import Embedder, Reranker, TokenCounter
from inference.serving import keys
from inference.serving.client import Client, NoWorker

T = TypeVar("T")

# As slow as a large model on a processor is, and a worker that dies is missed long before.
SHARED_DOCUMENTS_SECONDS = 3600.0
# How often it is looked whether the worker that is waited for is there.
_LOOK_SECONDS = 0.2


class Loadable(Protocol):
    """A model that is loaded when it is first used."""

    @property
    def is_loaded(self) -> bool: ...


class LoadableEmbedder(Embedder, Loadable, Protocol): ...


class LoadableReranker(Reranker, Loadable, Protocol): ...


class Shared:
    """A model of this machine that a worker has in memory already, so that it is asked.

    Where no worker serves the model for `patience` seconds, it is loaded here, and used here from
    then on. A model that cannot be loaded either is waited for once and not with every question.
    """

    def __init__(self, own: Loadable, *, patience: float) -> None:
        self._loadable = own
        self._patience = patience
        self._is_patient = True

    def _answer(self, ask: Callable[[], T], do: Callable[[], T]) -> T:
        """What a worker answers, or else what this process makes itself."""
        until = monotonic() + (self._patience if self._is_patient else 0.0)
        while not self._loadable.is_loaded:
            try:
                answer = ask()
            except NoWorker:
                if monotonic() >= until:
                    self._is_patient = False
                    break
                sleep(_LOOK_SECONDS)
            else:
                self._is_patient = True
                return answer
        return do()


class SharedEmbedder(Shared):
    """What only needs the model folder's JSON files, such as counting tokens, is done here."""

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
        """Whether a question can be embedded without a model being loaded for it."""
        service = keys.embedder_service(self.model_name, self.dimensions)
        return self._own.is_loaded or Client(self._url).is_served(service)

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
        """Shape (dimensions,). Raises InferenceError."""
        return self._answer(
            lambda: self._worker.embed_query(text, instruction),
            lambda: self._own.embed_query(text, instruction),
        )

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


class SharedReranker(Shared):
    """Judges where the model is."""

    def __init__(
        self, own: LoadableReranker, url: str, *, alias: str, patience: float = 0.0
    ) -> None:
        super().__init__(own, patience=patience)
        self._own = own
        self._worker = WorkerReranker(url, alias=alias)

    def score(
        self,
        query: str,
        texts: Sequence[str],
        *,
        stored: Sequence[float] = (),
        instruction: str | None = None,
    ) -> list[float]:
        """As the model scores. Raises InferenceError."""
        return self._answer(
            lambda: self._worker.score(query, texts, stored=stored, instruction=instruction),
            lambda: self._own.score(query, texts, stored=stored, instruction=instruction),
        )
