"""Title, metadata and access list of a document, set by people. Begin with `update_document`."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from django.utils.formats import number_format
from django.utils.translation import gettext
from psycopg.types.json import Jsonb

from accounts.audit import Action
from common.errors import Conflict, InvalidInput
from common.leases import retry_on_deadlock
from documents import lexical_index
from documents.ingestion import duplicates, listeners
from documents.ingestion.concurrency import share_collection_locks
from documents.ingestion.edits import context_with_title
from documents.ingestion.preparation import chunk_digest
from documents.ingestion.sources import checked_metadata
from documents.models import Chunk, Collection, Document
from documents.models.chunk import embedding_text
from documents.services.audit import record
from documents.services.chunk_edits import (
    TRIES,
    Vectors,
    collection_token_counter,
    current_document,
    embed_chunk_texts,
)
from documents.services.deletion import parts_of
from documents.services.documents import checked_access

#: The title is part of every passage's context, so all are embedded again.
MAX_TITLED_CHUNKS = 2_000
MAX_TITLE_CHARACTERS = 500


class Unset:
    """Type of UNSET, which means not given; None means everybody in the workspace."""


UNSET = Unset()


def update_document(
    *,
    document: Document,
    title: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    access: Sequence[str] | Unset | None = UNSET,
    user: Any = None,
) -> Document:
    """Set what is given; it takes precedence over the source, also when that is ingested again.

    `metadata` replaces all of it. `access` lists who may see the document, such as `user:7` or
    `group:3`, None for everybody in the workspace; it applies to all versions. Passages change in
    the same transaction; with a new title they are embedded again. Raises InvalidInput, Conflict,
    and EmbedderUnavailable.
    """
    if title is not None:
        title = " ".join(title.replace("\x00", "").split())
        if not title:
            raise InvalidInput(gettext("A document needs a title."), field="title")
        if len(title) > MAX_TITLE_CHARACTERS:
            raise InvalidInput(
                gettext("A title may have {limit} characters, not {length}.").format(
                    limit=MAX_TITLE_CHARACTERS, length=len(title)
                ),
                field="title",
            )
    if metadata is not None:
        metadata = checked_metadata(metadata)
    if not isinstance(access, Unset) and access is not None:
        access = checked_access(access, workspace_id=document.workspace_id, user=user)
    for _ in range(TRIES):
        current = current_document(document.pk)
        new_title = current.title if title is None else title
        contexts = _changed_contexts(current, new_title)
        texts = {
            chunk.pk: embedding_text(context, chunk.text)
            for chunk, context in contexts
            if chunk.text.strip()
        }
        vectors = embed_chunk_texts(current.collection, texts)
        store = partial(_store_update, current, new_title, contexts, vectors, metadata, access)
        if retry_on_deadlock(store):
            document.refresh_from_db()
            if not isinstance(access, Unset):
                # Attachments have the list of their mail, unless somebody gave them another.
                for attachment in parts_of([document]):
                    if attachment.access == current.access != access:
                        update_document(document=attachment, access=access, user=user)
            return document
    raise Conflict(
        gettext("Others change the same document again and again. Try again in a moment.")
    )


# --- the title in the passages -------------------------------------------------------------------


def _changed_contexts(document: Document, title: str) -> list[tuple[Chunk, str]]:
    """Passages whose context changes with the document's title, with the new context."""
    if title == document.title:
        return []
    if document.chunk_count > MAX_TITLED_CHUNKS:
        raise InvalidInput(
            gettext(
                "All of its {chunk_count} passages carry the title and would be embedded"
                " anew; {limit} at once are allowed. Bring the document again under its"
                " new title."
            ).format(
                chunk_count=number_format(document.chunk_count, force_grouping=True),
                limit=number_format(MAX_TITLED_CHUNKS, force_grouping=True),
            ),
            field="title",
        )
    counter = collection_token_counter(document.collection)
    rows = Chunk.objects.filter(document=document).defer("embedding", "search_vector", "metadata")
    contexts = [
        (
            chunk,
            context_with_title(
                title, chunk.context, chunk.heading_path, counter, before=document.title
            ),
        )
        for chunk in rows.order_by("ordinal")
    ]
    return [(chunk, context) for chunk, context in contexts if context != chunk.context]


# --- all of it, in one transaction ---------------------------------------------------------------


@transaction.atomic
def _store_update(
    document: Document,
    title: str,
    contexts: Sequence[tuple[Chunk, str]],
    vectors: Vectors,
    metadata: dict[str, Any] | None,
    access: list[str] | Unset | None,
) -> bool:
    """False if the passages are no longer those that the vectors were made for."""
    share_collection_locks([document.collection_id])
    ids = list(document.versions.values_list("pk", flat=True))
    duplicates.lock_with_duplicates(ids)
    held = Document.objects.filter(pk=document.pk, is_current=True).first()
    if held is None or not _is_as_planned(document, contexts):
        return False
    fields: list[str] = []
    corrections = dict(held.corrections)
    if title != held.title:
        fields.append("title")
        corrections["title"] = title
        _write_contexts(document.collection, contexts, vectors)
    if metadata is not None and metadata != held.metadata:
        fields.append("metadata")
        corrections |= _corrected_fields(held, metadata)
        # Each passage's own fields take precedence.
        parameters: dict[str, Any] = {
            "after": Jsonb(metadata),
            "before": Jsonb(held.metadata),
            "document": held.pk,
        }
        with connection.cursor() as cursor:
            cursor.execute(_COPY_METADATA, parameters)
    if not isinstance(access, Unset) and access != held.access:
        fields.append("access")
        duplicates.set_access(ids, access)
    if fields:
        values: dict[str, Any] = {"title": title, "corrections": corrections}
        if metadata is not None:
            values["metadata"] = metadata
        Document.objects.filter(pk=held.pk).update(**values, updated_at=timezone.now())
        if "title" in fields:
            listeners.loaded([held.pk])
        record(Action.CHANGED, held, fields=fields)
    return True


def _is_as_planned(document: Document, contexts: Sequence[tuple[Chunk, str]]) -> bool:
    collection = document.collection
    if not Collection.objects.filter(pk=collection.pk, space=collection.space_id).exists():
        return False
    if not contexts:
        return Document.objects.filter(pk=document.pk, title=document.title).exists()
    ids = {chunk.pk: chunk.content_sha256 for chunk, _ in contexts}
    now = Chunk.objects.filter(document=document)
    there = dict(now.values_list("pk", "content_sha256"))
    return len(there) == document.chunk_count and all(
        there.get(pk) == digest for pk, digest in ids.items()
    )


_WRITE_CONTEXT = """
    UPDATE documents_chunk
    SET context = %s, content_sha256 = %s, space_id = %s, embedding = %s WHERE id = %s
"""


def _write_contexts(
    collection: Collection, contexts: Sequence[tuple[Chunk, str]], vectors: Vectors
) -> None:
    chunks = Chunk.objects.filter(pk__in=list(vectors))
    lexical_index.forget_words(chunks)
    rows: list[Any] = [
        (
            context,
            chunk_digest(context, chunk.text),
            collection.space_id,
            vectors[chunk.pk],
            chunk.pk,
        )
        for chunk, context in contexts
        if chunk.pk in vectors
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE_CONTEXT, rows)


def _corrected_fields(document: Document, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Fields that differ from the source's; the others continue to follow it."""
    before = document.corrections
    of_source = {
        name: value
        for name, value in document.metadata.items()
        if name not in before.get("metadata", {})
    }
    own = {name: value for name, value in metadata.items() if of_source.get(name, ...) != value}
    without = {*before.get("without", ()), *of_source, *before.get("metadata", {})} - set(metadata)
    return {"metadata": own, "without": sorted(without)}


_COPY_METADATA = """
    UPDATE documents_chunk AS chunk
    SET metadata = %(after)s::jsonb || coalesce((
        SELECT jsonb_object_agg(own.key, own.value) FROM jsonb_each(chunk.metadata) AS own
        WHERE NOT %(before)s::jsonb ? own.key OR %(before)s::jsonb -> own.key <> own.value
    ), '{}'::jsonb)
    WHERE document_id = %(document)s
"""
