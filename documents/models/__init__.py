"""The tables of documents, one noun a file."""

from documents.models.chunk import Chunk
from documents.models.collection import Collection
from documents.models.document import Document, StagedDocument
from documents.models.edit import ChunkEdit
from documents.models.lexical import (
    Lexeme,
    LexicalSegment,
    PendingChunk,
    Posting,
    RemovedChunk,
)
from documents.models.reembedding import Reembedding
from documents.models.run import IngestionItem, IngestionRun
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
