"""Named model instances from `settings.INFERENCE`, each built once a process, on first use."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar, cast

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from inference.backends.chat_basic import NoChat
from inference.base import BackendUnavailable, ChatModel, Embedder, InferenceError, Reranker

T = TypeVar("T")


class InferenceHandler(Generic[T]):
    """Mapping from alias to instance for one kind of model, as Django's `storages` is for files."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._instances: dict[str, T] = {}
        self._own: dict[str, T] = {}
        self._lock = threading.Lock()
        setting_changed.connect(self._forget)

    def __getitem__(self, alias: str) -> T:
        """Raises InferenceError for an unknown alias, BackendUnavailable for one that fails."""
        with self._lock:
            if alias not in self._instances:
                self._instances[alias] = self._shared(alias, self._own_or_built(alias))
            return self._instances[alias]

    def own(self, alias: str) -> T:
        """The same, without asking a worker for what it has in memory: for the worker itself."""
        with self._lock:
            return self._own_or_built(alias)

    def __iter__(self) -> Iterator[str]:
        return iter(self._configured())

    def _own_or_built(self, alias: str) -> T:
        if alias not in self._own:
            self._own[alias] = self._build(alias)
        return self._own[alias]

    def _shared(self, alias: str, own: Any) -> T:
        """Models that are loaded into memory are held by one process, if it can be reached."""
        if not settings.SHARED_MODELS or not hasattr(own, "is_loaded"):
            return cast("T", own)
        from inference import shared  # noqa: PLC0415 (loads the broker's client)

        kind: Any = shared.SharedEmbedder if self.kind == "embedder" else shared.SharedReranker
        patience = settings.WORKER_PATIENCE_SECONDS
        return cast("T", kind(own, settings.REDIS_URL, alias=alias, patience=patience))

    def _configured(self) -> Mapping[str, Mapping[str, Any]]:
        configured: Mapping[str, Mapping[str, Any]] = settings.INFERENCE.get(self.kind, {})
        return configured

    def _build(self, alias: str) -> T:
        configured = self._configured()
        if alias not in configured:
            raise InferenceError(
                f"no {self.kind} is called {alias!r}; INFERENCE[{self.kind!r}] has:"
                f" {', '.join(sorted(configured)) or 'none'}."
            )
        path = configured[alias]["BACKEND"]
        try:
            instance: T = import_string(path)(**configured[alias].get("OPTIONS", {}))
        except (ImportError, TypeError) as error:
            raise BackendUnavailable(
                f"{self.kind} {alias!r} ({path}) cannot be made: {error}. Correct its BACKEND and"
                f" OPTIONS in INFERENCE[{self.kind!r}], or install what it imports."
            ) from error
        return instance

    def _forget(self, *, setting: str, **kwargs: object) -> None:
        if setting in {"INFERENCE", "SHARED_MODELS", "WORKER_PATIENCE_SECONDS"}:
            with self._lock:
                self._instances.clear()
                self._own.clear()


embedders: InferenceHandler[Embedder] = InferenceHandler("embedder")
rerankers: InferenceHandler[Reranker] = InferenceHandler("reranker")
chats: InferenceHandler[ChatModel] = InferenceHandler("chat")


def has_chat(alias: str = "default") -> bool:
    """Whether there is a chat model to ask, without asking it.

    Raises InferenceError for one that is configured and cannot be made, or for an unknown alias.
    """
    if alias == "default" and alias not in list(chats):
        return False
    return not isinstance(chats[alias], NoChat)
