"""The embedder of a space, and nothing else's: vectors of two models cannot be compared."""

import numpy as np
from numpy.typing import NDArray

from documents.models import EmbeddingSpace
from inference.base import DimensionMismatch, Embedder, InferenceError
from inference.handler import embedders
from inference.query_cache import embed_query_cached


class ModelMismatch(InferenceError):
    """A space whose configured embedder is another model than the one that made its vectors."""


def embedder_for(space: EmbeddingSpace) -> Embedder:
    """Raises InferenceError: also where the configuration was changed under a space."""
    embedder = embedders[space.embedder]
    if embedder.dimensions != space.dimensions:
        raise DimensionMismatch(space.dimensions, embedder.dimensions)
    if embedder.model_name != space.model_name:
        raise ModelMismatch(
            f"the vectors of space {space.name} are from {space.model_name}, and its embedder"
            f" {space.embedder!r} is now {embedder.model_name}: configure the old model again, and"
            " add a space for the new one (`manage.py spaces add`)."
        )
    return embedder


def embed_question(space: EmbeddingSpace, text: str) -> NDArray[np.float32]:
    """The vector with which a question is asked in `space`, shape (dimensions,), kept in the cache.

    Raises InferenceError, as `embedder_for` does.
    """
    embedder_for(space)
    return embed_query_cached(space.embedder, text, space.query_instruction or None)
