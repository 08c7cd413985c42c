"""Models that an example names and that cannot be had in a test, and what runs in their place.

The options that the example shows are given to the backend's own constructor, so that a wrong one
is found; then a server of `models`, or an embedder of the same size, takes its place.
"""

import json
import os
from typing import Any

from inference.backends.hashing import HashingEmbedder

_KINDS = (
    ("EMBEDDER", "EMBEDDERS"),
    ("RERANKER", "RERANKERS"),
    ("TOKEN_ENCODER", "TOKEN_ENCODERS"),
    ("CHAT", "CHATS"),
)
#: Where the backend finds its server; the example's own address is somebody else's.
_SERVERS = {
    "inference.backends.openai_compatible.OpenAIEmbedder": "EXAMPLES_OPENAI",
    "inference.backends.chat_openai.OpenAIChat": "EXAMPLES_OPENAI",
    "inference.backends.ollama.OllamaEmbedder": "EXAMPLES_OLLAMA",
    "inference.backends.chat_ollama.OllamaChat": "EXAMPLES_OLLAMA",
    "inference.backends.chat_anthropic.AnthropicChat": "EXAMPLES_ANTHROPIC",
}
#: Dimensions of models that would have to be downloaded.
_DOWNLOADS = {"Qwen/Qwen3-Embedding-0.6B": 1024}


class NamedHashing(HashingEmbedder):
    """Files its vectors under another model's name."""

    def __init__(self, *, dimensions: int, name: str) -> None:
        super().__init__(dimensions=dimensions)
        self.model_name = name


def put_in_place() -> None:
    """Change the environment of this process, before the settings are read."""
    for one, several in _KINDS:
        if path := os.environ.get(f"{one}_BACKEND", _default(one)):
            options = json.loads(os.environ.get(f"{one}_OPTIONS", "{}"))
            entry = _stand_in({"BACKEND": path, "OPTIONS": options})
            os.environ[f"{one}_BACKEND"] = entry["BACKEND"]
            os.environ[f"{one}_OPTIONS"] = json.dumps(entry["OPTIONS"])
        if several in os.environ:
            entries = json.loads(os.environ[several])
            os.environ[several] = json.dumps({k: _stand_in(v) for k, v in entries.items()})


def _default(one: str) -> str:
    """The bundled model has no stand-in, unless its options name another model."""
    if one == "EMBEDDER" and "EMBEDDER_OPTIONS" in os.environ:
        return "inference.backends.transformers_local.TransformersEmbedder"
    return ""


def _stand_in(entry: dict[str, Any]) -> dict[str, Any]:
    from django.utils.module_loading import import_string

    path, options = entry["BACKEND"], entry.get("OPTIONS", {})
    import_string(path)(**options)  # raises TypeError for an option that there is not
    if options.get("model") in _DOWNLOADS:
        hashing = {"dimensions": _DOWNLOADS[options["model"]], "name": options["model"]}
        return {"BACKEND": "tests.examples.stand_ins.NamedHashing", "OPTIONS": hashing}
    if server := _SERVERS.get(path):
        return {"BACKEND": path, "OPTIONS": {**options, "base_url": os.environ[server]}}
    return {"BACKEND": path, "OPTIONS": options}
