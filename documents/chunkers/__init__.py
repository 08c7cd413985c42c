"""Text to chunks with exact offsets. Pure Python and Rust: no Django, no Celery, no model."""

from documents.chunkers.base import Chunker, ChunkerError, Embed, Span, TokenCounter
from documents.chunkers.registry import CHUNKERS, get_chunker

__all__ = ["CHUNKERS", "Chunker", "ChunkerError", "Embed", "Span", "TokenCounter", "get_chunker"]
