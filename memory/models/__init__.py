"""What is remembered of a user."""

from memory.models.context import Context
from memory.models.extraction import ExtractionItem
from memory.models.fact import Fact
from memory.models.pruning import Pruning
from memory.remembered import MAX_EMBED_ATTEMPTS, Origin, Remembered

__all__ = [
    "MAX_EMBED_ATTEMPTS",
    "Context",
    "ExtractionItem",
    "Fact",
    "Origin",
    "Pruning",
    "Remembered",
]
