"""Admin of collections, documents and chunks; runs and spaces are mostly read-only."""

from documents.admin import chunks, collections, documents, runs, spaces

__all__ = ["chunks", "collections", "documents", "runs", "spaces"]
