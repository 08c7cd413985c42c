"""Text to chunks with exact offsets. Pure Python and Rust: no Django, no Celery, no model."""

from documents.chunkers.base import ChunkerError, Embed, Span, TokenCounter
from documents.chunkers.registry import CHUNKERS, PARENT_CHILD, check_options, get_chunker
from documents.chunkers.splitter import Chunker

__all__ = [
    "CHUNKERS",
    "PARENT_CHILD",
    "Chunker",
    "ChunkerError",
    "Embed",
    "Span",
    "TokenCounter",
    "check_options",
    "get_chunker",
]
