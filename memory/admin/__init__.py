"""Curation of memory: contexts, facts with their history, the queue of extraction, prunings."""

from memory.admin import contexts, extraction, facts, prunings

__all__ = ["contexts", "extraction", "facts", "prunings"]
