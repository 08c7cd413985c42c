"""Vectors of questions and titles in Django's cache, and the last success or failure of each
embedder.
"""

import hashlib
import logging
from collections.abc import Sequence
from time import monotonic

import numpy as np
from django.core.cache import caches
from numpy.typing import NDArray

from inference.interfaces import EmptyText, InferenceError
from inference.model_registry import embedders
from inference.vectors import check_vectors

#: Older failures are ignored.
FAILURE_KEEP_SECONDS = 300.0

_succeeded: set[str] = set()
_failures: dict[str, tuple[float, str]] = {}


def record_success(alias: str) -> None:
    """Record that the embedder worked."""
    _failures.pop(alias, None)
    _succeeded.add(alias)


def record_failure(alias: str, error: Exception) -> None:
    """Record the error of the embedder's last use."""
    _failures[alias] = monotonic(), str(error)


def last_failure(alias: str) -> str:
    """The embedder's last failure within five minutes; empty where there is none."""
    at, said = _failures.get(alias, (0.0, ""))
    return said if said and monotonic() - at < FAILURE_KEEP_SECONDS else ""


def has_succeeded(alias: str) -> bool:
    """Whether the embedder ever worked in this process."""
    return alias in _succeeded


logger = logging.getLogger(__name__)

CACHE_SECONDS = 24 * 60 * 60
STORED_DTYPE = np.dtype("<f4")  # the cache is shared by machines of either byte order


def embed_query_cached(
    alias: str, text: str, instruction: str | None = None
) -> NDArray[np.float32]:
    """Shape (dimensions,), from the cache if possible. A cache that is down only costs time.

    Raises whatever the embedder raises.
    """
    key = _cache_key("query", alias, text, instruction or "")
    vector = _read_cache(alias, [key]).get(key)
    if vector is None:
        vector = embed_query_uncached(alias, text, instruction)
        _write_cache({key: vector})
    return vector


def embed_documents_cached(alias: str, texts: Sequence[str]) -> NDArray[np.float32]:
    """The same for short texts that come again, such as titles: shape (len(texts), dimensions)."""
    keys = [_cache_key("document", alias, text) for text in texts]
    vectors = _read_cache(alias, keys)
    missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in vectors}
    if missing:
        made = embedders[alias].embed_documents(list(missing.values()))
        new = dict(zip(missing, made, strict=True))
        _write_cache(new)
        vectors |= new
    return np.stack([vectors[key] for key in keys])


def _cache_key(kind: str, alias: str, text: str, instruction: str = "") -> str:
    embedder = embedders[alias]
    # One model gives different vectors at different dimensions, so they are part of its name.
    identity = f"{embedder.model_name}\0{embedder.dimensions}\0{instruction}\0{text}"
    return f"{kind}-vector:" + hashlib.sha256(identity.encode(errors="replace")).hexdigest()


def _read_cache(alias: str, keys: Sequence[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors that are there, by key."""
    vectors: dict[str, NDArray[np.float32]] = {}
    try:
        stored = caches["default"].get_many(keys)
    except Exception as error:  # each cache backend has errors of its own
        logger.warning("vectors cannot be read from the cache, embedding without it: %s", error)
        return vectors
    for key, each in stored.items():
        try:
            vector = np.frombuffer(each, dtype=STORED_DTYPE).copy()
            vectors[key] = check_vectors(vector, dimensions=embedders[alias].dimensions)
        except (InferenceError, TypeError, ValueError) as error:
            logger.warning("a cached vector is unusable, embedding again: %s", error)
    return vectors


def _write_cache(vectors: dict[str, NDArray[np.float32]]) -> None:
    stored = {key: vector.astype(STORED_DTYPE).tobytes() for key, vector in vectors.items()}
    try:
        caches["default"].set_many(stored, timeout=CACHE_SECONDS)
    except Exception as error:
        logger.warning("vectors cannot be written to the cache: %s", error)


def embed_query_uncached(
    alias: str, text: str, instruction: str | None = None
) -> NDArray[np.float32]:
    """`embed_query_cached` without the cache; success or failure is recorded."""
    try:
        vector = embedders[alias].embed_query(text, instruction)
    except EmptyText:
        raise  # the question's fault
    except InferenceError as error:
        record_failure(alias, error)
        raise
    record_success(alias)
    return vector
