"""Keeps tables in step with ingestion: called when passages are added, changed or removed, in the
same transaction."""

from collections.abc import Container, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from documents.models import Chunk, Collection
from tables.models import Table
from tables.store import exported_corrections, import_corrections, store_tables


class TablesListener:
    """Implements `documents.ingestion.listeners.Listener`. Tables go with their documents."""

    def loaded(self, document_ids: Sequence[int], *, plain: Container[int] = ()) -> None:
        """Reads the documents' tables."""
        if read := [pk for pk in document_ids if pk not in plain]:
            store_tables(read)

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

    def exported(self, document_ids: Sequence[int]) -> Mapping[str, Mapping[int, Any]]:
        """`tables`: what curators have corrected."""
        return {"tables": exported_corrections(document_ids)}

    def imported(self, document_id: int, line: Mapping[str, Any]) -> None:
        """Makes the corrections those of the line."""
        if "tables" in line:
            import_corrections(document_id, line["tables"])
