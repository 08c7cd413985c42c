"""Stores: a collection as a program uses it, with its own ids, texts and vectors."""

from documents.ingestion.items import InvalidItems, Item, ItemProblem
from documents.services import Stored, StoredItem
from search.stores.matches import Match, Matches
from search.stores.store import EmbeddingUnavailable, Store, open_store

__all__ = [
    "EmbeddingUnavailable",
    "InvalidItems",
    "Item",
    "ItemProblem",
    "Match",
    "Matches",
    "Store",
    "Stored",
    "StoredItem",
    "open_store",
]
