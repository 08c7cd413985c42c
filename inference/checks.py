"""System checks: a wrong `INFERENCE` fails at `manage.py check`, not at the first request."""

import inspect
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning, register
from django.utils.module_loading import import_string

from common.checks import SETTINGS
from inference import embedding_models
from inference.chat_models import EXTRACTIVE, NO_PROVIDER, provider_of
from inference.interfaces import InferenceError
from inference.model_languages import is_list_of_codes

KINDS = ("embedder", "reranker", "token_encoder", "chat")
#: A site does without them.
OPTIONAL_KINDS = ("token_encoder",)
ADDRESS_SETTINGS = {
    "OPENAI_BASE_URL": "OPENAI_URL",
    "ANTHROPIC_BASE_URL": "ANTHROPIC_URL",
    "RAGSITE_OLLAMA_URL": "OLLAMA_URL",
}

ONNX_EMBEDDER = "inference.backends.onnx_local.OnnxEmbedder"
ONNX_RERANKER = "inference.backends.onnx_local.OnnxReranker"
ONNX_TOKEN_ENCODER = "inference.backends.onnx_local.OnnxTokenEncoder"  # noqa: S105
TORCH_BACKENDS = (
    "inference.backends.transformers_local.TransformersEmbedder",
    "inference.backends.rerank_cross_encoder.CrossEncoderReranker",
    "inference.backends.rerank_qwen3.Qwen3Reranker",
)
#: Backends that read a model from a folder of this machine.
LOCAL_BACKENDS = (ONNX_EMBEDDER, ONNX_RERANKER, ONNX_TOKEN_ENCODER, *TORCH_BACKENDS)
#: What they run where OPTIONS name no model; the embedder's depends on what is installed.
_DEFAULT_ONNX_MODELS = {
    ONNX_EMBEDDER: "",
    ONNX_RERANKER: "ms-marco-MiniLM-L12-v2",
    ONNX_TOKEN_ENCODER: "answerai-colbert-small-v1",
}
FOLDER_HINTS = {
    "embedder": "Correct EMBEDDER_OPTIONS. If a worker elsewhere has it, this does not matter.",
    "reranker": "`manage.py rerankers set MODEL` puts it right. If a worker elsewhere has it, this"
    " does not matter.",
    "token_encoder": "Correct TOKEN_ENCODER_OPTIONS, or leave TOKEN_ENCODER_BACKEND empty. If a"
    " worker elsewhere has it, this does not matter.",
}


@register(SETTINGS)
def check_inference(**kwargs: object) -> list[CheckMessage]:
    """E001 shape, E002 no default, E003 BACKEND not importable, E004 invalid OPTIONS.

    Imports the backends' modules, which is cheap; loads no model.
    """
    configured = getattr(settings, "INFERENCE", None)
    if not isinstance(configured, dict):
        hint = f"Give it the keys {', '.join(KINDS)}."
        return [_error("E001", "INFERENCE must be a dict.", hint)]
    unknown = sorted(str(kind) for kind in configured if kind not in KINDS)
    errors: list[CheckMessage] = [
        _error("E001", f"INFERENCE has no such kind as {kind!r}.", f"Known: {', '.join(KINDS)}.")
        for kind in unknown
    ]
    for kind in KINDS:
        where, aliases = f"INFERENCE[{kind!r}]", configured.get(kind, {})
        if not isinstance(aliases, dict):
            hint = 'Write {"default": {"BACKEND": "dotted.path", "OPTIONS": {}}}.'
            errors.append(_error("E001", f"{where} must be a dict of aliases.", hint))
            continue
        if "default" not in aliases and (aliases or kind not in OPTIONAL_KINDS):
            hint = f'Add {where}["default"].'
            errors.append(_error("E002", f"{where} has no default.", hint))
        for alias, entry in aliases.items():
            errors += _check_entry(f"{where}[{alias!r}]", entry, kind)
    return errors


def _check_entry(where: str, entry: Any, kind: str) -> Iterator[CheckMessage]:
    has_languages = kind != "chat"
    is_well_formed = (
        isinstance(entry, dict)
        and entry.keys() <= {"BACKEND", "OPTIONS", *(["LANGUAGES"] if has_languages else [])}
        and isinstance(entry.get("BACKEND"), str)
        and isinstance(entry.get("OPTIONS", {}), dict)
        and is_list_of_codes(entry.get("LANGUAGES", []))
    )
    if not is_well_formed:
        hint = 'Write {"BACKEND": "dotted.path", "OPTIONS": {}} and nothing else.'
        if has_languages:
            hint = hint.replace("{}}", '{}, "LANGUAGES": ["en"]}')
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


@register(SETTINGS)
def check_model_folders(**kwargs: object) -> list[CheckMessage]:
    """W002: a local model that is missing here, or torch for it. They may be on a worker's machine,
    so it is no error. Reads files only.
    """
    configured = settings.INFERENCE if isinstance(settings.INFERENCE, dict) else {}
    return [
        Warning(f"INFERENCE[{kind!r}][{alias!r}]: {missing}", hint=hint, id="inference.W002")
        for kind, hint in FOLDER_HINTS.items()
        for alias, entry in (configured.get(kind) or {}).items()
        if isinstance(entry, dict) and entry.get("BACKEND") in LOCAL_BACKENDS
        if (
            missing := _missing_packages(entry["BACKEND"])
            or _missing_folder(entry["BACKEND"], entry.get("OPTIONS") or {})
        )
    ]


def _missing_packages(backend: str) -> str:
    if backend not in TORCH_BACKENDS or (find_spec("torch") and find_spec("transformers")):
        return ""
    return "it needs torch and transformers: `pip install -r requirements-torch.txt`."


def _missing_folder(backend: str, options: Mapping[str, Any]) -> str:
    if backend in _DEFAULT_ONNX_MODELS:
        return _missing_onnx_model(backend, options.get("model"))
    from inference.local.model_folder import locate_model  # noqa: PLC0415 - loads the hub's client, for names

    model = options.get("model")
    if not model or options.get("allow_download"):
        return ""
    try:
        folder, _ = locate_model(model)
    except InferenceError as error:
        return str(error)
    if folder.is_file():  # the bundled multilingual model
        return ""
    if not (folder / "config.json").is_file() or not any(folder.glob("*.safetensors")):
        return f"{folder} has no config.json or no *.safetensors, so it is no whole model."
    return ""


def _missing_onnx_model(backend: str, model: str | None) -> str:
    from inference.backends.onnx_local import locate_onnx_model  # noqa: PLC0415 - as above
    from inference.local.model_folder import onnx_file  # noqa: PLC0415

    if model is None and backend == ONNX_EMBEDDER:
        return ""  # check_bundled_models looks after it
    try:
        path, _, bundled = locate_onnx_model(model or _DEFAULT_ONNX_MODELS[backend])
    except InferenceError as error:
        return str(error)
    if bundled or path.is_file() or onnx_file(path):
        return ""
    if backend == ONNX_EMBEDDER and (path / "model.safetensors").is_file():
        return ""
    return f"{path} has neither model.onnx nor onnx/model.onnx, so there is no model to run."


@register(SETTINGS)
def check_bundled_models(**kwargs: object) -> list[CheckMessage]:
    """W003: the wheel of the default models is missing, so that a weaker one takes their place."""
    configured = settings.INFERENCE if isinstance(settings.INFERENCE, dict) else {}
    entry = (configured.get("embedder") or {}).get("default")
    if not isinstance(entry, dict) or entry.get("BACKEND") != ONNX_EMBEDDER:
        return []
    from inference.local.bundled import HOW_TO_INSTALL, is_installed  # noqa: PLC0415

    if (entry.get("OPTIONS") or {}).get("model") or is_installed():
        return []
    message = (
        "bge-small-en-v1.5, the reranker and the token encoder for English are not installed:"
        " all-MiniLM-L6-v2, which finds less, takes the place of the first, and nothing that of the"
        " others."
    )
    hint = f"Run {HOW_TO_INSTALL}, or choose a model by EMBEDDER_BACKEND and EMBEDDER_OPTIONS."
    return [Warning(message, hint=hint, id="inference.W003")]


@register(SETTINGS)
def check_chat_names(**kwargs: object) -> list[CheckMessage]:
    """E005 a reserved name, E006 no provider's model, E007 an invalid address, W001 a provider
    without a key. Asks no server.
    """
    found: list[CheckMessage] = []
    chats = settings.INFERENCE.get("chat") if isinstance(settings.INFERENCE, dict) else None
    if isinstance(chats, dict) and EXTRACTIVE in chats:
        hint = "Call that alias something else."
        found.append(_error("E005", f"“{EXTRACTIVE}” is what answers without a model.", hint))
    for name in [] if settings.CHAT_MODELS == [NO_PROVIDER] else settings.CHAT_MODELS:
        maker = provider_of(name) or provider_of(name, embedding_models.PROVIDERS)
        if maker is None:
            hint = (
                "Begin it with claude-, gpt-, chatgpt-, o1-, text-embedding- or ollama/; aliases"
                " need no mention."
            )
            found.append(_error("E006", f"RAGSITE_CHAT_MODELS: {name!r} is no maker's.", hint))
        elif not maker.is_configured():
            hint = f"Set {maker.needs}, or take it out."
            message = f"RAGSITE_CHAT_MODELS: {name!r} cannot be asked for."
            found.append(Warning(message, hint=hint, id="inference.W001"))
    for variable, setting in ADDRESS_SETTINGS.items():
        if address := getattr(settings, setting):
            from inference.remote.client import checked_url  # noqa: PLC0415 - loads HTTPX

            try:
                checked_url(address)
            except InferenceError as error:
                hint = "Write it like http://localhost:11434."
                found.append(_error("E007", f"{variable}: {error}", hint))
    return found


def _error(number: str, message: str, hint: str) -> Error:
    return Error(message, hint=hint, id=f"inference.{number}")
