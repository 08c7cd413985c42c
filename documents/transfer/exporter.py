"""Write a collection as lines, in one snapshot and with bounded memory. Begin with
`write_export`."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby, islice
from typing import Any, BinaryIO

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Q, QuerySet

from common.json_lines import encode_line
from documents.ingestion import listeners, preparation
from documents.ingestion.preparation import RECIPE_VERSION
from documents.models import Chunk, Collection, Document
from documents.transfer.format import ExportHeader, encode_vector

#: Documents whose chunks are asked for at once.
EXPORT_BATCH = 100

_DOCUMENT_FIELDS = (
    *("key", "version", "is_current", "title", "source", "url", "media_type", "rendering"),
    *("language", "metadata", "declared", "access", "size", "content_sha256"),
)
_CHUNK_FIELDS = (
    *("ordinal", "key", "text", "context", "heading_path", "summary", "token_count", "start"),
    *("end", "page", "parent", "metadata", "language", "content_sha256"),
)


@dataclass(frozen=True, slots=True)
class ExportResult:
    """Counts of what was written. `left_out` are documents without text: failed or waiting."""

    documents: int
    chunks: int
    left_out: int


def write_export(
    collection: Collection,
    file: BinaryIO,
    *,
    with_vectors: bool,
    only: Sequence[int] | None = None,
    on_progress: Callable[[int, int], Any] = lambda done, total: None,
) -> ExportResult:
    """Write the collection's documents including superseded versions, or `only` those with these
    ids.

    Concurrent changes are not included. Vectors of chunks that are being re-embedded are left out:
    importing makes them again.
    """
    with _snapshot():
        collection.refresh_from_db()
        file.write(encode_line(export_header(collection, with_vectors=with_vectors).as_line()))
        rows = Document.objects.filter(collection=collection)
        rows = rows if only is None else rows.filter(pk__in=only)
        total = rows.count()
        documents = chunks = 0
        for batch in _document_batches(rows):
            # A superseded alias is exported with the original's text, and what belongs to it.
            added = listeners.exported(
                [each.pk if each.is_current else each.text_id for each in batch]
            )
            for document, its_chunks in _with_chunks(batch, with_vectors=with_vectors):
                # While a changed text waits, the hash is that of the new one already.
                is_ready = document.status == Document.Status.READY
                recipe = preparation.recipe_for(collection).digest(document.declared)
                original = document.duplicate_of if document.is_link else None
                takes_text = original is not None and not document.is_current
                document_line = {
                    "type": "document",
                    **{name: getattr(document, name) for name in _DOCUMENT_FIELDS},
                    "source_sha256": document.source_sha256 if is_ready else "",
                    "is_up_to_date": is_ready and document.recipe == recipe,
                    "chunks": original.chunk_count
                    if original and takes_text
                    else document.chunk_count,
                    "stored_with": original.key if original and not takes_text else None,
                    **added[document.text_id if takes_text else document.pk],
                }
                file.write(encode_line(document_line))
                documents += 1
                for chunk in its_chunks:
                    chunk_line = {
                        "type": "chunk",
                        **{name: getattr(chunk, name) for name in _CHUNK_FIELDS},
                    }
                    if (
                        with_vectors
                        and chunk.embedding is not None
                        and chunk.space_id == collection.space_id
                    ):
                        chunk_line["vector"] = encode_vector(chunk.embedding)
                    file.write(encode_line(chunk_line))
                    chunks += 1
            on_progress(documents, total)
        result = ExportResult(documents, chunks, left_out=total - documents)
        file.write(encode_line({"type": "end", "documents": documents, "chunks": chunks}))
    return result


def export_header(collection: Collection, *, with_vectors: bool) -> ExportHeader:
    """The header line of the collection."""
    return ExportHeader(
        slug=collection.slug,
        name=collection.name,
        description=collection.description,
        language=collection.default_language,
        chunker=collection.chunker,
        chunker_options=collection.chunker_options,
        graph=collection.graph,
        recipe_version=RECIPE_VERSION,
        fallback_language=settings.FALLBACK_LANGUAGE,
        model_name=collection.space.model_name,
        dimensions=collection.space.dimensions,
        metric=collection.space.metric,
        has_vectors=with_vectors,
    )


@contextmanager
def _snapshot() -> Iterator[None]:
    """All statements within see the tables as of its beginning."""
    is_outermost = not connection.in_atomic_block
    with transaction.atomic():
        if is_outermost:
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield


def _document_batches(documents: QuerySet[Document]) -> Iterator[list[Document]]:
    """Current documents first, and aliases after them, so that they can be imported in order. A
    superseded alias is exported with its text."""
    rows = documents.select_related("duplicate_of")
    aliases = Q(duplicate_of__isnull=False, chunk_count=0, status=Document.Status.READY)
    for is_current in (True, False):
        for kind in (Q(chunk_count__gt=0), aliases):
            ordered = rows.filter(kind, is_current=is_current).order_by("id")
            iterator = ordered.iterator(chunk_size=EXPORT_BATCH)
            while batch := list(islice(iterator, EXPORT_BATCH)):
                yield batch


def _with_chunks(
    documents: list[Document], *, with_vectors: bool
) -> Iterator[tuple[Document, Iterator[Chunk]]]:
    rows = Chunk.objects.order_by("document_id", "ordinal")
    rows = rows.defer("search_vector", *(() if with_vectors else ("embedding",)))
    if not documents[0].is_current and documents[0].is_link:
        for document in documents:
            yield document, rows.filter(document=document.text_id).iterator(chunk_size=500)
        return
    rows = rows.filter(document__in=documents)
    groups = groupby(rows.iterator(chunk_size=500), key=lambda chunk: chunk.document_id)
    following = next(groups, None)
    for document in documents:
        if following is not None and following[0] == document.pk:
            yield document, following[1]
            following = next(groups, None)
        else:
            yield document, iter(())
