"""The tables of a database as documents, kept in step with it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from documents.catalogue.tables import Table, UnreadTable
from documents.catalogue.writing import table_source
from documents.ingestion.recipes import recipe_of
from documents.ingestion.sources import BrokenSource, Source
from documents.models import Collection, Document, IngestionRun
from documents.services.deletion import delete_documents
from documents.services.documents import ingest_inline

#: What the sentences around the names are written in.
_LANGUAGE = "en"


@dataclass(frozen=True, slots=True)
class Catalogued:
    """What was done: `vanished` are keys of tables that the database has no more."""

    run: IngestionRun
    vanished: tuple[str, ...]
    deleted: bool


def ingest_catalogue(
    *,
    collection: Collection,
    database: str,
    entries: Sequence[Table | UnreadTable],
    schema: str = "",
    delete: bool = False,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
) -> Catalogued:
    """One document for each table, in this process; unchanged tables are passed over.

    `database` names where they come from; only tables from there, and of `schema` if given, can
    vanish. With `delete` those are removed.
    """
    language = recipe_of(collection).language or _LANGUAGE
    run = ingest_inline(
        collection=collection,
        sources=(_source(entry, database=database, language=language) for entry in entries),
        source=f"catalogue of {database}",
        on_progress=on_progress,
    )
    vanished = _vanished(collection, database, schema, kept={str(entry.name) for entry in entries})
    if delete and vanished:
        delete_documents(documents=vanished)
    return Catalogued(
        run=run,
        vanished=tuple(document.key for document in vanished),
        deleted=delete and bool(vanished),
    )


def _source(entry: Table | UnreadTable, *, database: str, language: str) -> Source | BrokenSource:
    if isinstance(entry, UnreadTable):
        return BrokenSource(name=entry.name, size=0, code="malformed", reason=entry.reason)
    return table_source(entry, database=database, language=language)


def _vanished(
    collection: Collection, database: str, schema: str, *, kept: set[str]
) -> list[Document]:
    # `declared`, because a table that failed has no other metadata yet.
    known = Document.objects.filter(
        collection=collection,
        is_current=True,
        declared__metadata__kind="table",
        declared__metadata__database=database,
    )
    if schema:
        known = known.filter(declared__metadata__schema=schema)
    return [document for document in known.order_by("key") if document.key not in kept]
