"""Query vectors in Django's cache, and the last success or failure of each embedder."""

import hashlib
import logging
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
    embedder = embedders[alias]
    # One model gives different vectors at different dimensions, so they are part of its name.
    space = f"{embedder.model_name}\0{embedder.dimensions}\0{instruction or ''}\0"
    key = "query-vector:" + hashlib.sha256((space + text).encode(errors="replace")).hexdigest()
    try:
        if (stored := caches["default"].get(key)) is not None:
            kept = np.frombuffer(stored, dtype=STORED_DTYPE).copy()
            return check_vectors(kept, dimensions=embedder.dimensions)
    except InferenceError as error:
        logger.warning("cached query vector is unusable, embedding again: %s", error)
    except Exception as error:  # each cache backend has errors of its own
        logger.warning("query cache cannot be read, embedding without it: %s", error)
    vector = embed_query_uncached(alias, text, instruction)
    try:
        caches["default"].set(key, vector.astype(STORED_DTYPE).tobytes(), timeout=CACHE_SECONDS)
    except Exception as error:
        logger.warning("query cache cannot be written: %s", error)
    return vector


def embed_query_uncached(
    alias: str, text: str, instruction: str | None = None
) -> NDArray[np.float32]:
    """The same without the cache; success or failure is recorded."""
    try:
        vector = embedders[alias].embed_query(text, instruction)
    except EmptyText:
        raise  # the question's fault
    except InferenceError as error:
        record_failure(alias, error)
        raise
    record_success(alias)
    return vector
