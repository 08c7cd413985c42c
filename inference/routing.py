"""Chat models by the name that who asks gives: those of the settings, and those of known makers."""

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import lru_cache

from django.conf import settings
from django.core.signals import setting_changed
from django.utils.module_loading import import_string

from common.errors import RagsiteError
from inference.backends.chat_basic import NoChat
from inference.base import ChatModel, InferenceError
from inference.handler import chats

DEFAULT = "default"
EXTRACTIVE = "extractive"
NOBODYS = "none"  # in place of names and patterns: no maker's model
LONGEST_NAME = 200
KEPT = 64  # models of makers; whoever asks may make names up, and each would be kept for good
SHOWN = 20  # names in an error


class UnknownModel(InferenceError, RagsiteError):
    """No chat model of this site has that name."""

    code = "unknown_model"


@dataclass(frozen=True, slots=True)
class ModelName:
    """A chat model that may be asked for. `owner` is the maker's name, or “ragsite” for what the
    settings name and for what needs no model."""

    name: str
    owner: str
    is_default: bool


@dataclass(frozen=True, slots=True)
class Maker:
    """Whose models are known by how their names begin, which `prefix` matches.

    `backend` is called with a name less `dropped`, and with the address in the setting `address`
    where that is set. Without the variable `needs` there are none of these models.
    """

    owner: str
    prefix: re.Pattern[str]
    backend: str
    address: str
    needs: str
    dropped: str = ""

    def is_configured(self) -> bool:
        """Ollama needs its address, which is a setting, and the others a key, which is none."""
        is_key = self.needs.endswith("_KEY")
        return bool(os.environ.get(self.needs, "").strip() if is_key else self._address())

    def made(self, name: str) -> ChatModel:
        """Raises BackendUnavailable."""
        where = {"base_url": self._address()} if self._address() else {}
        model: ChatModel = import_string(self.backend)(name.removeprefix(self.dropped), **where)
        return model

    def _address(self) -> str:
        address: str = getattr(settings, self.address)
        return address


MAKERS = (
    Maker(
        owner="anthropic",
        prefix=re.compile(r"claude-"),
        backend="inference.backends.chat_anthropic.AnthropicChat",
        address="ANTHROPIC_URL",
        needs="ANTHROPIC_API_KEY",
    ),
    Maker(
        owner="openai",
        prefix=re.compile(r"gpt-|chatgpt-|o[1-9](-|$)"),
        backend="inference.backends.chat_openai.OpenAIChat",
        address="OPENAI_URL",
        needs="OPENAI_API_KEY",
    ),
    Maker(
        owner="ollama",
        prefix=re.compile(r"ollama/"),
        backend="inference.backends.chat_ollama.OllamaChat",
        address="OLLAMA_URL",
        needs="RAGSITE_OLLAMA_URL",
        dropped="ollama/",
    ),
)


def chat_model(name: str = "") -> ChatModel | None:
    """The chat model called `name`; None for “extractive”, which answers by quoting and needs none.

    "" and “default” are the default of the settings, which is extractive where they name no model.
    Other names are, in this order: an alias of INFERENCE["chat"]; what the model of an alias is
    called; the name of a known maker's model, where the site has that maker's key or address and
    RAGSITE_CHAT_MODELS, if set, allows it. Raises UnknownModel, or BackendUnavailable for one that
    is configured and cannot be made.
    """
    name = name or DEFAULT
    if name == EXTRACTIVE:
        return None
    if name in chats:
        return _or_none(chats[name])
    if name == DEFAULT:
        return None
    for alias in chats:
        if (model := _made(alias)) and model.model_name == name:
            return model
    if _is_routed(name):
        return _routed(name)
    raise _unknown(name)


def chat_models() -> list[ModelName]:
    """The names that `chat_model` knows and can be told beforehand, the default first.

    Aliases of the settings that cannot be made are left out, and so are makers' models that
    RAGSITE_CHAT_MODELS does not name in full.
    """
    default = _made(DEFAULT)
    aliases = [alias for alias in chats if alias != DEFAULT and _made(alias)]
    names = [ModelName(EXTRACTIVE, "ragsite", is_default=_has_no_default())]
    if default:
        # “default” says little. Where another alias has taken its name, it must do.
        own = DEFAULT if default.model_name in {*aliases, EXTRACTIVE} else default.model_name
        names.insert(0, ModelName(own, "ragsite", is_default=True))
    names += [ModelName(alias, "ragsite", is_default=False) for alias in aliases]
    known = {each.name for each in names}
    names += [
        ModelName(name, maker.owner, is_default=False)
        for name in dict.fromkeys(settings.CHAT_MODELS)
        if name not in known and (maker := maker_of(name)) and maker.is_configured()
        if not is_pattern(name)
    ]
    return names


def maker_of(name: str) -> Maker | None:
    """Whose model, or pattern of models, `name` is, configured or not."""
    return next((maker for maker in MAKERS if maker.prefix.match(name)), None)


def is_pattern(name: str) -> bool:
    return any(character in name for character in "*?[")


def _is_routed(name: str) -> bool:
    maker = maker_of(name)
    return (
        maker is not None
        and maker.is_configured()
        and len(name) <= LONGEST_NAME
        and name.isprintable()
        and (not settings.CHAT_MODELS or any(_allowed(name)))
    )


def _allowed(name: str) -> Iterator[bool]:
    return (fnmatchcase(name, pattern) for pattern in settings.CHAT_MODELS)


@lru_cache(KEPT)
def _routed(name: str) -> ChatModel:
    maker = maker_of(name)
    if maker is None:
        raise _unknown(name)
    return maker.made(name)


def _made(alias: str) -> ChatModel | None:
    """None also for one that cannot be made: a broken alias must not break the others."""
    try:
        return _or_none(chats[alias])
    except InferenceError:
        return None


def _or_none(model: ChatModel) -> ChatModel | None:
    return None if isinstance(model, NoChat) else model


def _has_no_default() -> bool:
    try:
        return DEFAULT not in chats or isinstance(chats[DEFAULT], NoChat)
    except InferenceError:
        return False


def _unknown(name: str) -> UnknownModel:
    known = [each.name for each in chat_models()]
    more = f" and {len(known) - SHOWN} more" if len(known) > SHOWN else ""
    maker = maker_of(name)
    why = ""
    if maker and not maker.is_configured():
        why = f" Models of {maker.owner} need {maker.needs} in the site's environment."
    elif maker:
        why = " RAGSITE_CHAT_MODELS does not allow it."
    shown = name if len(name) <= LONGEST_NAME else f"{name[:LONGEST_NAME]}…"
    return UnknownModel(
        f"There is no chat model “{shown}”. There are: {', '.join(known[:SHOWN])}{more}.{why}"
    )


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in {"CHAT_MODELS", "OPENAI_URL", "ANTHROPIC_URL", "OLLAMA_URL"}:
        _routed.cache_clear()


setting_changed.connect(_forget)
