"""Named model instances from `settings.INFERENCE`, each built once a process, on first use."""

import threading
from collections.abc import Iterator, Mapping
from typing import Any, Generic, TypeVar

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
        self._lock = threading.Lock()
        setting_changed.connect(self._forget)

    def __getitem__(self, alias: str) -> T:
        """Raises InferenceError for an unknown alias, BackendUnavailable for one that fails."""
        with self._lock:
            if alias not in self._instances:
                self._instances[alias] = self._build(alias)
            return self._instances[alias]

    def __iter__(self) -> Iterator[str]:
        return iter(self._configured())

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
        if setting == "INFERENCE":
            with self._lock:
                self._instances.clear()


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
