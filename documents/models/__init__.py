"""The models of documents, one noun a module."""

from documents.models.chunk import (
    Chunk,
    ChunkEdit,
    ChunkTokens,
    Lexeme,
    LexicalSegment,
    PendingChunk,
    PendingPosting,
    Posting,
    RemovedChunk,
)
from documents.models.collection import Collection, EmbeddingSpace
from documents.models.document import Document, ScannedPage, StagedDocument, StagedVectors
from documents.models.run import IngestionItem, IngestionRun, Reembedding

__all__ = [
    "Chunk",
    "ChunkEdit",
    "ChunkTokens",
    "Collection",
    "Document",
    "EmbeddingSpace",
    "IngestionItem",
    "IngestionRun",
    "Lexeme",
    "LexicalSegment",
    "PendingChunk",
    "PendingPosting",
    "Posting",
    "Reembedding",
    "RemovedChunk",
    "ScannedPage",
    "StagedDocument",
    "StagedVectors",
]
