"""Title, metadata and access of a document, set by people."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.utils import timezone
from psycopg.types.json import Jsonb

from accounts.history import Action, Kind, note_change
from common.deadlocks import despite_deadlocks
from common.errors import Conflict, InvalidInput
from documents import lexical_index
from documents.ingestion import duplicates, listeners
from documents.ingestion.locks import share_collections
from documents.ingestion.preparing import chunk_digest
from documents.ingestion.revising import context_under
from documents.ingestion.sources import MAX_METADATA_CHARACTERS
from documents.models import Chunk, Collection, Document
from documents.models.chunk import embedding_text
from documents.services.access import checked_access
from documents.services.editing import (
    TRIES,
    Vectors,
    current_document,
    embedded,
    token_counter,
)

#: The title stands in the context of every passage, and all are embedded anew.
MAX_TITLED_CHUNKS = 2_000
MAX_TITLE_CHARACTERS = 500


class Unset:
    """Not given: None means everybody in the workspace."""


UNSET = Unset()


@dataclass(frozen=True, slots=True)
class _Titled:
    """The document's passages under another title: those whose context changes, with it."""

    collection: Collection
    title: str
    contexts: Sequence[tuple[Chunk, str]] = ()


def update_document(
    *,
    document: Document,
    title: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    access: Sequence[str] | Unset | None = UNSET,
    user: Any = None,
) -> Document:
    """Set what is given; it goes before what the source says, also when that is ingested again.

    `metadata` becomes all there is. `access` names who may see the document, such as `user:7` or
    `group:3`, None for everybody in the workspace; it holds for all versions. Passages follow in
    the same transaction; under another title they are embedded anew. Raises InvalidInput, Conflict,
    and ModelAway.
    """
    if title is not None:
        title = _checked_title(title)
    if metadata is not None:
        metadata = _checked_metadata(metadata)
    if not isinstance(access, Unset) and access is not None:
        access = checked_access(access, workspace_id=document.workspace_id, user=user)
    for _ in range(TRIES):
        current = current_document(document.pk)
        titled = _titled(current, title)
        vectors = _vectors(titled)
        store = partial(_store, current, titled, vectors, metadata, access)
        if despite_deadlocks(store):
            document.refresh_from_db()
            return document
    raise Conflict("Others change the same document again and again. Try again in a moment.")


def _checked_title(title: str) -> str:
    title = " ".join(title.replace("\x00", "").split())
    if not title:
        raise InvalidInput("A document needs a title.", field="title")
    if len(title) > MAX_TITLE_CHARACTERS:
        raise InvalidInput(
            f"A title may have {MAX_TITLE_CHARACTERS} characters, not {len(title)}.", field="title"
        )
    return title


def _checked_metadata(metadata: Mapping[str, Any]) -> dict[str, Any]:
    if len(str(metadata)) > MAX_METADATA_CHARACTERS:
        raise InvalidInput(
            f"The metadata may have {MAX_METADATA_CHARACTERS:,} characters.", field="metadata"
        )
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(metadata), allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"The metadata is no JSON: {error}.", field="metadata") from error
    if "\\u0000" in json.dumps(plain):
        raise InvalidInput("The metadata may not hold U+0000.", field="metadata")
    return plain


# --- the title in the passages -------------------------------------------------------------------


def _titled(document: Document, title: str | None) -> _Titled:
    if title is None or title == document.title:
        return _Titled(document.collection, document.title)
    if document.chunk_count > MAX_TITLED_CHUNKS:
        raise InvalidInput(
            f"All of its {document.chunk_count:,} passages carry the title and would be embedded"
            f" anew; {MAX_TITLED_CHUNKS:,} at once are allowed. Bring the document again under its"
            " new title.",
            field="title",
        )
    counter = token_counter(document.collection)
    rows = Chunk.objects.filter(document=document).defer("embedding", "search_vector", "metadata")
    contexts = [
        (
            chunk,
            context_under(title, chunk.context, chunk.heading_path, counter, before=document.title),
        )
        for chunk in rows.order_by("ordinal")
    ]
    changed = [(chunk, context) for chunk, context in contexts if context != chunk.context]
    return _Titled(document.collection, title, changed)


def _vectors(titled: _Titled) -> Vectors:
    texts = {
        chunk.pk: embedding_text(context, chunk.text)
        for chunk, context in titled.contexts
        if chunk.text.strip()
    }
    return embedded(titled.collection, texts)


# --- all of it, in one transaction ---------------------------------------------------------------


@transaction.atomic
def _store(
    document: Document,
    titled: _Titled,
    vectors: Vectors,
    metadata: dict[str, Any] | None,
    access: list[str] | Unset | None,
) -> bool:
    """Whether the passages were still those that the vectors were made for."""
    share_collections([document.collection_id])
    held = _hold(document)
    if held is None or not _is_as_planned(document, titled):
        return False
    fields: list[str] = []
    corrections = dict(held.corrections)
    if titled.title != held.title:
        fields.append("title")
        corrections["title"] = titled.title
        _write_contexts(held, titled, vectors)
    if metadata is not None and metadata != held.metadata:
        fields.append("metadata")
        corrections |= _corrections(held, metadata)
        _write_metadata(held, metadata)
    if not isinstance(access, Unset) and access != held.access:
        fields.append("access")
        _write_access(held, access)
    if fields:
        values: dict[str, Any] = {"title": titled.title, "corrections": corrections}
        if metadata is not None:
            values["metadata"] = metadata
        Document.objects.filter(pk=held.pk).update(**values, updated_at=timezone.now())
        if "title" in fields:
            listeners.loaded([held.pk])
        note_change(
            action=Action.CHANGED,
            kind=Kind.DOCUMENT,
            workspace_id=held.workspace_id,
            thing=held.pk,
            collection_id=held.collection_id,
            fields=fields,
        )
    return True


# In the order of their ids, as everywhere, with all versions and the duplicates that lean on them.
_HOLD = """
    SELECT id FROM documents_document
    WHERE id = ANY(%(ids)s) OR duplicate_of_id = ANY(%(ids)s)
    ORDER BY id FOR NO KEY UPDATE
"""


def _hold(document: Document) -> Document | None:
    ids = list(document.versions.values_list("pk", flat=True))
    with connection.cursor() as cursor:
        cursor.execute(_HOLD, {"ids": ids})
    return Document.objects.filter(pk=document.pk, is_current=True).first()


def _is_as_planned(document: Document, titled: _Titled) -> bool:
    collection = titled.collection
    if not Collection.objects.filter(pk=collection.pk, space=collection.space_id).exists():
        return False
    if not titled.contexts:
        return Document.objects.filter(pk=document.pk, title=document.title).exists()
    ids = {chunk.pk: chunk.content_sha256 for chunk, _ in titled.contexts}
    now = Chunk.objects.filter(document=document)
    there = dict(now.values_list("pk", "content_sha256"))
    return len(there) == document.chunk_count and all(
        there.get(pk) == digest for pk, digest in ids.items()
    )


_WRITE = """
    UPDATE documents_chunk
    SET context = %s, content_sha256 = %s, space_id = %s, embedding = %s WHERE id = %s
"""


def _write_contexts(document: Document, titled: _Titled, vectors: Vectors) -> None:
    chunks = Chunk.objects.filter(pk__in=list(vectors))
    lexical_index.forget(chunks)
    rows: list[Any] = [
        (
            context,
            chunk_digest(context, chunk.text),
            titled.collection.space_id,
            vectors[chunk.pk],
            chunk.pk,
        )
        for chunk, context in titled.contexts
        if chunk.pk in vectors
    ]
    with connection.cursor() as cursor:
        cursor.executemany(_WRITE, rows)


def _corrections(document: Document, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """What differs from what the source says: its other fields go on following it."""
    before = document.corrections
    told = {
        name: value
        for name, value in document.metadata.items()
        if name not in before.get("metadata", {})
    }
    own = {name: value for name, value in metadata.items() if told.get(name, ...) != value}
    without = {*before.get("without", ()), *told, *before.get("metadata", {})} - set(metadata)
    return {"metadata": own, "without": sorted(without)}


_COPY_METADATA = """
    UPDATE documents_chunk AS chunk
    SET metadata = %(after)s::jsonb || coalesce((
        SELECT jsonb_object_agg(own.key, own.value) FROM jsonb_each(chunk.metadata) AS own
        WHERE NOT %(before)s::jsonb ? own.key OR %(before)s::jsonb -> own.key <> own.value
    ), '{}'::jsonb)
    WHERE document_id = %(document)s
"""


def _write_metadata(document: Document, metadata: Mapping[str, Any]) -> None:
    """The document's with each passage, whose own fields stay and go before it."""
    values: dict[str, Any] = {
        "after": Jsonb(metadata),
        "before": Jsonb(document.metadata),
        "document": document.pk,
    }
    with connection.cursor() as cursor:
        cursor.execute(_COPY_METADATA, values)


def _write_access(document: Document, access: list[str] | None) -> None:
    """Of all versions. What was stored once with another document is stored for itself from now
    on, because a text is seen by those who may see its document."""
    ids = list(document.versions.values_list("pk", flat=True))
    duplicates.hand_over({pk: duplicates.Text(pk, "") for pk in ids})
    for link in Document.objects.filter(pk__in=ids):
        if link.is_link:
            duplicates.take_copy(link)
    Document.objects.filter(pk__in=ids).update(access=access)
    Chunk.objects.filter(document__in=ids).update(access=access)
