"""Curation of collections, documents and their chunks; a look at runs and spaces."""

from documents.admin import chunks, collections, documents, edits, runs, segments, spaces

__all__ = ["chunks", "collections", "documents", "edits", "runs", "segments", "spaces"]
