"""System checks: a wrong `INFERENCE` fails at `manage.py check`, not at the first request."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.module_loading import import_string

from common.checks import SETTINGS
from inference.base import InferenceError
from inference.routing import EXTRACTIVE, NOBODYS, maker_of

KINDS = ("embedder", "reranker", "chat")
ADDRESSES = {
    "OPENAI_BASE_URL": "OPENAI_URL",
    "ANTHROPIC_BASE_URL": "ANTHROPIC_URL",
    "RAGSITE_OLLAMA_URL": "OLLAMA_URL",
}

#: Backends that read a model from a folder of this machine.
LOCAL_BACKENDS = (
    "inference.backends.transformers_local.TransformersEmbedder",
    "inference.backends.rerank_cross_encoder.CrossEncoderReranker",
    "inference.backends.rerank_qwen3.Qwen3Reranker",
)
FOLDER_HINTS = {
    "embedder": "Correct EMBEDDER_OPTIONS. If a worker elsewhere has it, this does not matter.",
    "reranker": "`manage.py rerankers set MODEL` puts it right. If a worker elsewhere has it, this"
    " does not matter.",
}


@register(SETTINGS)
def check_inference(**kwargs: object) -> list[CheckMessage]:
    """E001 shape, E002 no default, E003 BACKEND not importable, E004 OPTIONS it does not take.

    Imports the backends' modules, which is cheap; loads no model.
    """
    configured = getattr(settings, "INFERENCE", None)
    if not isinstance(configured, dict):
        return [_error("E001", "INFERENCE must be a dict.", f"Give it the keys {_words(KINDS)}.")]
    unknown = sorted(str(kind) for kind in configured if kind not in KINDS)
    errors: list[CheckMessage] = [
        _error("E001", f"INFERENCE has no such kind as {kind!r}.", f"Known: {_words(KINDS)}.")
        for kind in unknown
    ]
    for kind in KINDS:
        errors += _check_kind(kind, configured.get(kind, {}))
    return errors


def _check_kind(kind: str, aliases: Any) -> Iterator[CheckMessage]:
    if not isinstance(aliases, dict):
        hint = 'Write {"default": {"BACKEND": "dotted.path", "OPTIONS": {}}}.'
        yield _error("E001", f"INFERENCE[{kind!r}] must be a dict of aliases.", hint)
        return
    if "default" not in aliases:
        hint = f'Add INFERENCE[{kind!r}]["default"].'
        yield _error("E002", f"INFERENCE[{kind!r}] has no default.", hint)
    for alias, entry in aliases.items():
        yield from _check_entry(f"INFERENCE[{kind!r}][{alias!r}]", entry)


def _check_entry(where: str, entry: Any) -> Iterator[CheckMessage]:
    if not _well_formed(entry):
        hint = 'Write {"BACKEND": "dotted.path", "OPTIONS": {}} and nothing else.'
        yield _error("E001", f"{where} is malformed.", hint)
        return
    try:
        backend = import_string(entry["BACKEND"])
    except ImportError as error:
        hint = "Correct BACKEND, or install what it imports."
        yield _error("E003", f"{where}: {error}", hint)
        return
    try:
        inspect.signature(backend).bind(**entry.get("OPTIONS", {}))
    except TypeError as error:
        hint = f"It takes {inspect.signature(backend)}."
        yield _error("E004", f"{where}: OPTIONS do not fit: {error}.", hint)


def _well_formed(entry: Any) -> bool:
    return (
        isinstance(entry, dict)
        and entry.keys() <= {"BACKEND", "OPTIONS"}
        and isinstance(entry.get("BACKEND"), str)
        and isinstance(entry.get("OPTIONS", {}), dict)
    )


@register(SETTINGS)
def check_model_folders(**kwargs: object) -> list[CheckMessage]:
    """W002 a local model that is not here. Its weights may be on the machine of a worker, so it is
    no error. Looks at files only."""
    configured = settings.INFERENCE if isinstance(settings.INFERENCE, dict) else {}
    return [
        Warning(f"INFERENCE[{kind!r}][{alias!r}]: {missing}", hint=hint, id="inference.W002")
        for kind, hint in FOLDER_HINTS.items()
        for alias, entry in (configured.get(kind) or {}).items()
        if isinstance(entry, dict) and entry.get("BACKEND") in LOCAL_BACKENDS
        if (missing := _missing(entry.get("OPTIONS") or {}))
    ]


def _missing(options: Mapping[str, Any]) -> str:
    from inference.local.locate import locate  # noqa: PLC0415 - loads the hub's client, for names

    model = options.get("model")
    if not model or options.get("allow_download"):
        return ""
    try:
        folder, _ = locate(model)
    except InferenceError as error:
        return str(error)
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        return f"{folder} has no config.json or no *.safetensors, so it is no whole model."
    return ""


@register(SETTINGS)
def check_chat_names(**kwargs: object) -> list[CheckMessage]:
    """E005 a name that is taken, E006 no maker's model, E007 no address, W001 a maker without key.

    Asks no server.
    """
    found: list[CheckMessage] = []
    chats = settings.INFERENCE.get("chat") if isinstance(settings.INFERENCE, dict) else None
    if isinstance(chats, dict) and EXTRACTIVE in chats:
        hint = "Call that alias something else."
        found.append(_error("E005", f"“{EXTRACTIVE}” is what answers without a model.", hint))
    for name in [] if settings.CHAT_MODELS == [NOBODYS] else settings.CHAT_MODELS:
        maker = maker_of(name)
        if maker is None:
            hint = "Begin it with claude-, gpt-, chatgpt-, o1- or ollama/; aliases need no mention."
            found.append(_error("E006", f"RAGSITE_CHAT_MODELS: {name!r} is no maker's.", hint))
        elif not maker.is_configured():
            hint = f"Set {maker.needs}, or take it out."
            message = f"RAGSITE_CHAT_MODELS: {name!r} cannot be asked for."
            found.append(Warning(message, hint=hint, id="inference.W001"))
    return found + list(_check_addresses())


def _check_addresses() -> Iterator[CheckMessage]:
    for variable, setting in ADDRESSES.items():
        if address := getattr(settings, setting):
            from inference.remote.address import checked_url  # noqa: PLC0415 - loads HTTPX

            try:
                checked_url(address)
            except InferenceError as error:
                message = f"{variable}: {error}"
                yield _error("E007", message, "Write it like http://localhost:11434.")


def _error(number: str, message: str, hint: str) -> Error:
    return Error(message, hint=hint, id=f"inference.{number}")


def _words(names: tuple[str, ...]) -> str:
    return ", ".join(names)
