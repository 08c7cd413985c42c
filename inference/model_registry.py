"""Named model instances from `settings.INFERENCE`, each built once a process, on first use; and
those that were connected while the site runs (`ConnectedModel`)."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from inference.backends.chat_basic import NoChat
from inference.interfaces import (
    BackendUnavailable,
    ChatModel,
    Embedder,
    InferenceError,
    Reranker,
    TokenEncoder,
)

T = TypeVar("T")

NO_CHAT = f"{NoChat.__module__}.{NoChat.__qualname__}"


@dataclass(frozen=True, slots=True)
class ConnectedModel:
    """A model that was connected while the site runs. `build` makes its instance, anew whenever
    `version` differs.

    Settings of collections and spaces name it by `alias`, which stays when `name` changes.
    `workspaces` are those that may use it, None for all. It is the default of the site, and goes
    before that in the workspaces of `chosen_in`.
    """

    id: int
    alias: str
    name: str
    model_name: str
    build: Callable[[], Any]
    version: object
    workspaces: frozenset[int] | None = None
    is_default: bool = False
    chosen_in: frozenset[int] = frozenset()

    def serves(self, workspace_id: int | None) -> bool:
        return self.workspaces is None or workspace_id in self.workspaces


FindConnected = Callable[[str], Sequence[ConnectedModel]]
_find_connected: FindConnected = lambda kind: ()  # noqa: E731 (replaced by `connect`)


def connect(find: FindConnected) -> FindConnected:
    """Have the registries know what `find(kind)` returns, besides the settings, which win. Returns
    the former function."""
    global _find_connected
    former, _find_connected = _find_connected, find
    return former


class ModelRegistry(Generic[T]):
    """Mapping from alias to instance for one kind of model, like Django's `storages`."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._instances: dict[str, T] = {}
        self._own: dict[str, T] = {}
        self._connected: dict[int, tuple[object, T]] = {}
        self._lock = threading.Lock()
        setting_changed.connect(self._forget)

    def __getitem__(self, alias: str) -> T:
        """Raises InferenceError for an unknown alias, BackendUnavailable for one that fails."""
        if model := self.find_connected(alias):
            return self.build_connected(model)
        with self._lock:
            if alias not in self._instances:
                own: Any = self._build(alias)
                if settings.SHARED_MODELS and hasattr(own, "is_loaded"):
                    # A worker's instance is used instead of one in memory, where there is one.
                    from inference import shared  # noqa: PLC0415 (loads the broker's client)

                    kind: Any = {
                        "embedder": shared.SharedEmbedder,
                        "reranker": shared.SharedReranker,
                        "token_encoder": shared.SharedTokenEncoder,
                    }[self.kind]
                    patience = settings.WORKER_PATIENCE_SECONDS
                    own = kind(own, settings.REDIS_URL, alias=alias, patience=patience)
                self._instances[alias] = own
            return self._instances[alias]

    def own(self, alias: str) -> T:
        """The local instance, without asking a worker: for the worker itself."""
        with self._lock:
            return self._build(alias)

    def release_idle(self, seconds: float) -> bool:
        """Whether this process had models in memory that it did not use for so long. They are
        forgotten, and loaded again when they are asked for. The default embedder stays, because
        every question needs it at once."""
        with self._lock:
            others: list[Any] = [
                own
                for alias, own in self._own.items()
                if alias != "default" or self.kind != "embedder"
            ]
        released = [own.release_idle(seconds) for own in others if hasattr(own, "release_idle")]
        return any(released)

    def __iter__(self) -> Iterator[str]:
        return iter(self.labels())

    def labels(self) -> dict[str, str]:
        """What people call each model, by alias."""
        found = {alias: alias for alias in self.configured()}
        for model in self.connected():
            found.setdefault(model.alias, model.name)
        return found

    def is_configured(self, alias: str) -> bool:
        """Whether the settings have a model of this alias. The bundled reranker gives way to a
        connected one."""
        if alias == "default" and self.kind == "reranker" and not self.is_set():
            return False
        return bool(self.configured().get(alias, {}).get("BACKEND", NO_CHAT) != NO_CHAT)

    def is_set(self) -> bool:
        """Whether the environment names the default of this kind."""
        return self.kind in settings.MODELS_SET

    def find_connected(self, alias: str) -> ConnectedModel | None:
        """The connected model that answers to this alias, if one does."""
        if self.is_configured(alias):
            return None
        for model in self.connected():
            if alias == model.alias or (alias == "default" and model.is_default):
                return model
        return None

    def identity(self, alias: str) -> str:
        """Another one whenever another model answers to the alias."""
        if model := self.find_connected(alias):
            return f"{model.id} {model.version}"
        return str(self.configured()[alias])

    def connected(self, workspace_id: int | None = None) -> list[ConnectedModel]:
        """The connected models of the site, and those that only some workspaces may use, as far as
        this is one of them."""
        return [model for model in _find_connected(self.kind) if model.serves(workspace_id)]

    def chosen(self) -> dict[int, ConnectedModel]:
        """The models that workspaces have chosen and may use, by the workspace's id."""
        return {
            workspace_id: model
            for model in _find_connected(self.kind)
            for workspace_id in model.chosen_in
            if model.serves(workspace_id)
        }

    def build_connected(self, model: ConnectedModel) -> T:
        """Its instance, kept until the connection changes. Raises InferenceError."""
        version, instance = self._connected.get(model.id, (None, None))
        if instance is None or version != model.version:
            instance = model.build()
            self._connected[model.id] = (model.version, instance)
        return instance

    def configured(self) -> Mapping[str, Mapping[str, Any]]:
        """The entries of the settings by alias."""
        configured: Mapping[str, Mapping[str, Any]] = settings.INFERENCE.get(self.kind, {})
        return configured

    def _build(self, alias: str) -> T:
        if alias in self._own:
            return self._own[alias]
        configured = self.configured()
        if alias not in configured:
            raise InferenceError(
                f"no {self.kind} is called {alias!r}; INFERENCE[{self.kind!r}] has:"
                f" {', '.join(sorted(configured)) or 'none'}."
            )
        path = configured[alias]["BACKEND"]
        try:
            self._own[alias] = import_string(path)(**configured[alias].get("OPTIONS", {}))
        except (ImportError, TypeError) as error:
            raise BackendUnavailable(
                f"{self.kind} {alias!r} ({path}) cannot be made: {error}. Correct its BACKEND and"
                f" OPTIONS in INFERENCE[{self.kind!r}], or install what it imports."
            ) from error
        return self._own[alias]

    def _forget(self, *, setting: str, **kwargs: object) -> None:
        if setting in {"INFERENCE", "SHARED_MODELS", "WORKER_PATIENCE_SECONDS"}:
            with self._lock:
                self._instances.clear()
                self._own.clear()


embedders: ModelRegistry[Embedder] = ModelRegistry("embedder")
rerankers: ModelRegistry[Reranker] = ModelRegistry("reranker")
token_encoders: ModelRegistry[TokenEncoder] = ModelRegistry("token_encoder")
chats: ModelRegistry[ChatModel] = ModelRegistry("chat")


def alias_of(alias: str, model_name: str) -> str:
    """The alias of the embedder `model_name`: the given one, unless its entry is another model by
    now and one of the other entries is this model. Loads no model."""

    def candidates() -> Iterator[str]:
        yield alias  # connected models are looked for only where it is another model
        yield from (other for other in embedders if other != alias)

    for each in candidates():
        try:
            if embedders[each].model_name == model_name:
                return each
        except InferenceError:
            if each == alias:  # what is wrong with it is said where it is used
                return alias
    return alias


def has_chat(alias: str = "default") -> bool:
    """Whether there is a chat model to ask, without asking it.

    Raises InferenceError for one that is configured and cannot be made, or for an unknown alias.
    """
    if alias == "default" and alias not in chats.configured():
        return any(model.is_default for model in chats.connected())
    return not isinstance(chats[alias], NoChat)
