"""Curation of collections, documents and their chunks; a look at runs, spaces and statistics."""

from documents.admin import chunks, collections, documents, edits, runs, spaces, statistics

__all__ = ["chunks", "collections", "documents", "edits", "runs", "spaces", "statistics"]
