"""Keeps tables in step with ingestion: called when passages are added, changed or removed, in the
same transaction."""

from collections.abc import Mapping, Sequence

from django.db.models import QuerySet

from documents.models import Chunk, Collection
from tables.models import Table
from tables.store import store_tables


class TablesListener:
    """Implements `documents.ingestion.listeners.Listener`. Tables go with their documents."""

    def loaded(self, document_ids: Sequence[int]) -> None:
        """Reads the documents' tables."""
        store_tables(document_ids)

    def overtaken(self, versions: Mapping[int, int]) -> None:
        """Marks the tables of former versions."""
        Table.objects.filter(document__in=list(versions)).update(is_current=False)

    def leaving(self, chunks: "QuerySet[Chunk]") -> None:
        """Nothing: `loaded` follows, or the document is deleted."""

    def rewritten(self, chunks: "QuerySet[Chunk]") -> None:
        """Nothing: `loaded` follows."""

    def ingested(self, document_ids: Sequence[int]) -> None:
        """Nothing is left to do."""

    def changed(self, collection: Collection) -> None:
        """Tables have nothing to do with the graph."""
