"""The embedder of a space, and nothing else's: vectors of two models cannot be compared."""

from documents.models import EmbeddingSpace
from inference.base import DimensionMismatch, Embedder, InferenceError
from inference.handler import embedders


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
