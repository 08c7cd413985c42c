"""Embedders by the names that their makers give them, as `inference.chat_models` has chat models.
Begin with `routed_embedder`.
"""

import re
from functools import lru_cache

from django.core.signals import setting_changed

from inference.chat_models import CACHED_MODELS, Provider, provider_of
from inference.interfaces import BackendUnavailable, DimensionMismatch, Embedder

PROVIDERS = (
    Provider(
        owner="openai",
        prefix=re.compile(r"text-embedding-"),
        backend="inference.backends.openai_compatible.OpenAIEmbedder",
        address="OPENAI_URL",
        needs="OPENAI_API_KEY",
    ),
    Provider(
        owner="ollama",
        prefix=re.compile(r"ollama/"),
        backend="inference.backends.ollama.OllamaEmbedder",
        address="OLLAMA_URL",
        needs="RAGSITE_OLLAMA_URL",
        dropped="ollama/",
    ),
)


def routed_embedder(name: str) -> Embedder | None:
    """The embedder that a provider calls `name`; None where no provider does, the site has not its
    key or address, or RAGSITE_CHAT_MODELS, if set, does not allow it. Raises InferenceError: a
    model that is not known here is asked for the length of its vectors.
    """
    maker = provider_of(name, PROVIDERS)
    return _build_routed(maker, name) if maker and maker.offers(name) else None


@lru_cache(CACHED_MODELS)
def _build_routed(maker: Provider, name: str) -> Embedder:
    try:
        known: Embedder = maker.build(name)
    except BackendUnavailable:  # the length of its vectors is not known
        length = 1
        try:
            maker.build(name, dimensions=1).embed_query("length")
        except DimensionMismatch as error:
            length = error.actual
        measured: Embedder = maker.build(name, dimensions=length)
        return measured
    return known


def _forget(*, setting: str, **kwargs: object) -> None:
    if setting in {"OPENAI_URL", "OLLAMA_URL"}:
        _build_routed.cache_clear()


setting_changed.connect(_forget)
