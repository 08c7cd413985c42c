"""Ingest the tables of a database as documents, and keep them in sync."""

from collections.abc import Callable, Sequence
from typing import Any

from documents.catalogue.tables import Table, table_source
from documents.ingestion.preparation import recipe_for
from documents.ingestion.sources import BrokenSource
from documents.models import Collection, Document, IngestionRun
from documents.services.deletion import delete_documents
from documents.services.documents import ingest_inline

#: Language of the sentences around the names.
_SENTENCE_LANGUAGE = "en"


def ingest_catalogue(
    *,
    collection: Collection,
    database: str,
    entries: Sequence[Table | BrokenSource],
    schema: str = "",
    delete: bool = False,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
) -> tuple[IngestionRun, list[str]]:
    """One document per table, in this process; unchanged tables are skipped. Returns the run, and
    the keys of tables that the database no longer has.

    `database` names their origin; only tables from there, and of `schema` if given, can vanish.
    With `delete` those are deleted.
    """
    language = recipe_for(collection).language or _SENTENCE_LANGUAGE
    run = ingest_inline(
        collection=collection,
        sources=(
            entry
            if isinstance(entry, BrokenSource)
            else table_source(entry, database=database, language=language)
            for entry in entries
        ),
        source=f"catalogue of {database}",
        on_progress=on_progress,
    )
    present_keys = {str(entry.name) for entry in entries}
    # `declared`, because a table that failed has no other metadata yet.
    known = Document.objects.filter(
        collection=collection,
        is_current=True,
        declared__metadata__kind="table",
        declared__metadata__database=database,
    )
    if schema:
        known = known.filter(declared__metadata__schema=schema)
    vanished = [document for document in known.order_by("key") if document.key not in present_keys]
    if delete and vanished:
        delete_documents(documents=vanished)
    return run, [document.key for document in vanished]
