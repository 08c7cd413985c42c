"""Query vectors kept in Django's cache, so that a repeated or paged query embeds once."""

import hashlib
import logging

import numpy as np
from django.core.cache import caches
from numpy.typing import NDArray

from inference import lately
from inference.base import Embedder, EmptyText, InferenceError
from inference.handler import embedders
from inference.vectors import check_vectors

logger = logging.getLogger(__name__)

KEEP_SECONDS = 24 * 60 * 60
STORED = np.dtype("<f4")  # the cache is shared by machines of either byte order


def embed_query_cached(
    alias: str, text: str, instruction: str | None = None
) -> NDArray[np.float32]:
    """Shape (dimensions,), from the cache where it is there. A cache that is down costs time only.

    Raises whatever the embedder raises.
    """
    embedder = embedders[alias]
    key = _key(embedder, text, instruction)
    vector = _read(key, embedder.dimensions)
    if vector is None:
        vector = embed_query_now(alias, text, instruction)
        _write(key, vector)
    return vector


def embed_query_now(alias: str, text: str, instruction: str | None = None) -> NDArray[np.float32]:
    """The same without the cache; whether it works is noted."""
    try:
        vector = embedders[alias].embed_query(text, instruction)
    except EmptyText:
        raise  # the question's fault
    except InferenceError as error:
        lately.note_problem(alias, error)
        raise
    lately.note_answer(alias)
    return vector


def _key(embedder: Embedder, text: str, instruction: str | None) -> str:
    # One model gives different vectors at different dimensions, so they are part of its name.
    space = f"{embedder.model_name}\0{embedder.dimensions}\0{instruction or ''}\0"
    return "query-vector:" + hashlib.sha256((space + text).encode(errors="replace")).hexdigest()


def _read(key: str, dimensions: int) -> NDArray[np.float32] | None:
    try:
        stored = caches["default"].get(key)
        if stored is None:
            return None
        return check_vectors(np.frombuffer(stored, dtype=STORED).copy(), dimensions=dimensions)
    except InferenceError as error:
        logger.warning("cached query vector is unusable, embedding again: %s", error)
    except Exception as error:  # each cache backend has errors of its own
        logger.warning("query cache cannot be read, embedding without it: %s", error)
    return None


def _write(key: str, vector: NDArray[np.float32]) -> None:
    try:
        caches["default"].set(key, vector.astype(STORED).tobytes(), timeout=KEEP_SECONDS)
    except Exception as error:
        logger.warning("query cache cannot be written: %s", error)
