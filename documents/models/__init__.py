"""The models of documents, one noun a module."""

from documents.models.chunk import Chunk, ChunkEdit
from documents.models.collection import Collection
from documents.models.document import Document, StagedDocument
from documents.models.lexical import Lexeme, LexicalSegment, PendingChunk, Posting, RemovedChunk
from documents.models.run import IngestionItem, IngestionRun, Reembedding
from documents.models.space import EmbeddingSpace

__all__ = [
    "Chunk",
    "ChunkEdit",
    "Collection",
    "Document",
    "EmbeddingSpace",
    "IngestionItem",
    "IngestionRun",
    "Lexeme",
    "LexicalSegment",
    "PendingChunk",
    "Posting",
    "Reembedding",
    "RemovedChunk",
    "StagedDocument",
]
