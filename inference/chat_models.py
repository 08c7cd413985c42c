"""Chat models by name: aliases of the settings, connected models, and models of known providers."""

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Annotated, Any

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string
from django.utils.translation import gettext

from common.errors import RagsiteError
from inference.backends.chat_basic import NoChat
from inference.interfaces import ChatModel, InferenceError
from inference.model_registry import chats, has_chat

DEFAULT = "default"
EXTRACTIVE = "extractive"
NO_PROVIDER = "none"  # in place of names and patterns: no maker's model
MAX_NAME_CHARACTERS = 200
CACHED_MODELS = (
    64  # models of makers; whoever asks may make names up, and each would be kept for good
)
LISTED_NAMES = 20  # names in an error


class UnknownModel(InferenceError, RagsiteError):
    """This site has no chat model of that name."""

    code = "unknown_model"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A chat model that may be requested. `owner` is the provider's name, or “ragsite” for aliases
    of the settings and for extractive answers.
    """

    name: Annotated[str, "What `model` of a question may say."]
    owner: Annotated[str, "Its maker, or `ragsite`."]
    is_default: bool


@dataclass(frozen=True, slots=True)
class Provider:
    """A provider whose model names match `prefix`.

    `backend` is called with the name without `dropped`, and with the address in the setting
    `address` where that is set. Without the variable `needs` its models are not available.
    """

    owner: str
    prefix: re.Pattern[str]
    backend: str
    address: str
    needs: str
    dropped: str = ""

    def is_configured(self) -> bool:
        """Whether the address (Ollama, a setting) or the key (others, environment) is set."""
        is_key = self.needs.endswith("_KEY")
        return bool(os.environ.get(self.needs, "").strip() if is_key else self.base_url)

    @property
    def base_url(self) -> str:
        return str(getattr(settings, self.address))

    def offers(self, name: str) -> bool:
        """Whether this site may ask for its model `name`: RAGSITE_CHAT_MODELS, if set, allows it,
        and the key or address is there."""
        is_allowed = not settings.CHAT_MODELS or any(
            fnmatchcase(name, pattern) for pattern in settings.CHAT_MODELS
        )
        is_name = len(name) <= MAX_NAME_CHARACTERS and name.isprintable()
        return self.is_configured() and is_name and is_allowed

    def build(self, name: str, **options: Any) -> Any:
        """A new instance of its model `name`. Raises InferenceError."""
        where = {"base_url": self.base_url} if self.base_url else {}
        return import_string(self.backend)(name.removeprefix(self.dropped), **where, **options)


PROVIDERS = (
    Provider(
        owner="anthropic",
        prefix=re.compile(r"claude-"),
        backend="inference.backends.chat_anthropic.AnthropicChat",
        address="ANTHROPIC_URL",
        needs="ANTHROPIC_API_KEY",
    ),
    Provider(
        owner="openai",
        prefix=re.compile(r"gpt-|chatgpt-|o[1-9](-|$)"),
        backend="inference.backends.chat_openai.OpenAIChat",
        address="OPENAI_URL",
        needs="OPENAI_API_KEY",
    ),
    Provider(
        owner="ollama",
        prefix=re.compile(r"ollama/"),
        backend="inference.backends.chat_ollama.OllamaChat",
        address="OLLAMA_URL",
        needs="RAGSITE_OLLAMA_URL",
        dropped="ollama/",
    ),
)


def chat_model(name: str = "", *, workspace_id: int | None = None) -> ChatModel | None:
    """The chat model called `name` in the workspace; None for “extractive”, which answers by
    quoting.

    "" and “default” are what the workspace has chosen, else the default of the settings, else that
    of the connected models; without any it is extractive. Other names are, in this order: an alias
    of INFERENCE["chat"]; the model name of an alias; the name of a connected model that the
    workspace may use, and its model name; a known provider's model, where the site has its key or
    address and RAGSITE_CHAT_MODELS, if set, allows it. Raises UnknownModel, or BackendUnavailable
    for a configured model that cannot be built.
    """
    name = name or DEFAULT
    if name == EXTRACTIVE:
        return None
    if name == DEFAULT:
        return _default_model(workspace_id)
    if name in chats.configured():
        return _or_none(chats[name])
    for alias in chats.configured():
        if (model := _build_alias(alias)) and model.model_name == name:
            return model
    connected = chats.connected(workspace_id)
    named = [each for each in connected if name in (each.name, each.model_name)]
    if named:
        return chats.build_connected(min(named, key=lambda each: each.name != name))
    maker = provider_of(name)
    if maker and maker.offers(name):
        return _build_routed(maker, name)
    raise _unknown_model(name, workspace_id)


def _default_model(workspace_id: int | None) -> ChatModel | None:
    chosen = None if workspace_id is None else chats.chosen().get(workspace_id)
    if chosen is not None:
        return chats.build_connected(chosen)
    return _or_none(chats[DEFAULT]) if has_chat() else None


def chosen_models() -> dict[int, int]:
    """Ids of the connections that workspaces have chosen, by the workspace's id. The site's default
    answers in all others."""
    return {workspace_id: model.id for workspace_id, model in chats.chosen().items()}


def chat_models(*, workspace_id: int | None = None) -> list[ModelName]:
    """The names known in advance in the workspace, the default first.

    Aliases that cannot be built are left out, and so are providers' models that RAGSITE_CHAT_MODELS
    does not list by full name.
    """
    connected = chats.connected(workspace_id)
    is_set = chats.is_configured(DEFAULT)
    preferred = next((each for each in connected if workspace_id in each.chosen_in), None) or next(
        (each for each in connected if each.is_default and not is_set), None
    )
    default = _build_alias(DEFAULT) if is_set else None
    aliases = [alias for alias in chats.configured() if alias != DEFAULT and _build_alias(alias)]
    has_no_default = preferred is None and not is_set
    names = [ModelName(EXTRACTIVE, "ragsite", is_default=has_no_default)]
    if default:
        # Prefer the model's name to “default”, unless another alias has that name.
        own = DEFAULT if default.model_name in {*aliases, EXTRACTIVE} else default.model_name
        names.insert(0, ModelName(own, "ragsite", is_default=preferred is None))
    names += [ModelName(alias, "ragsite", is_default=False) for alias in aliases]
    known = {each.name for each in names}
    for each in connected:
        if each is preferred:
            names.insert(0, ModelName(each.name, "ragsite", is_default=True))
        elif each.name not in known:
            names.append(ModelName(each.name, "ragsite", is_default=False))
    known = {each.name for each in names}
    names += [
        ModelName(name, maker.owner, is_default=False)
        for name in dict.fromkeys(settings.CHAT_MODELS)
        if name not in known and (maker := provider_of(name)) and maker.is_configured()
        if not any(character in name for character in "*?[")  # a pattern
    ]
    return names


def provider_of(name: str, providers: Iterable[Provider] = PROVIDERS) -> Provider | None:
    """The provider of a model or pattern, configured or not."""
    return next((maker for maker in providers if maker.prefix.match(name)), None)


@lru_cache(CACHED_MODELS)
def _build_routed(maker: Provider, name: str) -> ChatModel:
    model: ChatModel = maker.build(name)
    return model


def _build_alias(alias: str) -> ChatModel | None:
    """None also for an alias that cannot be built: it must not break the others."""
    try:
        return _or_none(chats[alias])
    except InferenceError:
        return None


def _or_none(model: ChatModel) -> ChatModel | None:
    return None if isinstance(model, NoChat) else model


def _unknown_model(name: str, workspace_id: int | None) -> UnknownModel:
    known = [each.name for each in chat_models(workspace_id=workspace_id)]
    names = known[:LISTED_NAMES]
    if more := len(known) - len(names):
        names.append(gettext("and {count} more").format(count=more))
    maker = provider_of(name)
    why = ""
    if maker and not maker.is_configured():
        why = gettext("Models of {owner} need {variable} in the environment of the site.").format(
            owner=maker.owner, variable=maker.needs
        )
    elif maker:
        why = gettext("RAGSITE_CHAT_MODELS does not allow it.")
    shown = name if len(name) <= MAX_NAME_CHARACTERS else f"{name[:MAX_NAME_CHARACTERS]}…"
    return UnknownModel(
        gettext("There is no chat model “{name}”. There are: {names}. {why}")
        .format(name=shown, names=", ".join(names), why=why)
        .strip()
    )


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in {"CHAT_MODELS", "OPENAI_URL", "ANTHROPIC_URL", "OLLAMA_URL"}:
        _build_routed.cache_clear()


setting_changed.connect(_forget)
