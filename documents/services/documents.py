"""Documents: brought in, read whole, removed."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction

from accounts.history import Action, Kind, note_change
from common.errors import InvalidInput, NotFound
from documents.ingestion import admitting, recipes, runs, settling, versions
from documents.ingestion.contents import content_of
from documents.ingestion.inline import InlineIngestion
from documents.ingestion.linking import link
from documents.ingestion.locks import share_collections
from documents.ingestion.media import delete_files, store_file
from documents.ingestion.patching import joined
from documents.ingestion.registering import register_documents
from documents.ingestion.sources import (
    MAX_METADATA_CHARACTERS,
    BrokenSource,
    Source,
    checked_key,
    text_source,
)
from documents.ingestion.suspending import suspended_index
from documents.models import (
    Chunk,
    Collection,
    Document,
    IngestionItem,
    IngestionRun,
)
from documents.parsers import ParseError
from documents.services.access import checked_access

#: What members read of a run whose files only some of them may see.
LISTED_SOURCE = "Documents with an access list"


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's whole text, and the chunks whose offsets point into it."""

    text: str
    chunks: list[Chunk]


def ingest_text(
    *,
    collection: Collection,
    key: str,
    text: str,
    title: str = "",
    media_type: str = "text/plain",
    metadata: dict[str, Any] | None = None,
    user: Any = None,
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    access: Sequence[str] | None = None,
) -> IngestionRun:
    """Queue a document that is given as text; `key` is the caller's own id for it."""
    suffixes = {"text/plain": ".txt", "text/markdown": ".md", "text/html": ".html"}
    if media_type not in suffixes:
        raise InvalidInput(
            f"Text may be {', '.join(suffixes)}, not {media_type}. Send other types as files.",
            field="media_type",
        )
    if not key or len(key) > 1024:
        raise InvalidInput("The key must have 1 to 1,024 characters.", field="key")
    if not text.strip():
        raise InvalidInput("The text is empty.", field="text")
    if metadata and len(str(metadata)) > MAX_METADATA_CHARACTERS:
        raise InvalidInput(
            f"The metadata may have {MAX_METADATA_CHARACTERS:,} characters.", field="metadata"
        )
    declared = {"title": title, "metadata": metadata, "file_name": key + suffixes[media_type]}
    source = text_source(key, text, **{name: value for name, value in declared.items() if value})
    return ingest_sources(
        collection=collection,
        sources=[source],
        user=user,
        policy=policy,
        store_once=store_once,
        access=access,
        source=title or key,
    )


def ingest_sources(
    *,
    collection: Collection,
    sources: Iterable[Source | BrokenSource],
    user: Any = None,
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    source: str = "",
    access: Sequence[str] | None = None,
) -> IngestionRun:
    """Store sources and queue them for the workers: all or, where that fails, none.

    `access` names who may see the documents that are new, such as `user:7`; those that are there
    keep their lists, and take no text that is to be seen by fewer. The run does not name such
    files. Raises InvalidInput for a list that cannot be, and NotFound for a collection that was
    deleted.
    """
    listed = checked_access(access, workspace_id=collection.workspace_id, user=user)
    stored: list[str] = []
    complete = False
    try:
        with transaction.atomic():
            share_collections([collection.pk])  # nobody deletes it from here on
            _require(collection)
            run = create_run(
                collection=collection,
                user=user,
                policy=policy,
                store_once=store_once,
                source=source if listed is None else LISTED_SOURCE,
            )
            queued = [
                document_id
                for entry in _seen_by(listed, sources)
                if (document_id := _queue_source(entry, run, stored)) is not None
            ]
            from documents.tasks import enqueue  # noqa: PLC0415 (loads Celery)

            enqueue(queued)
            complete = True
    except BaseException:
        # One whose connection was cut at its end may have been committed all the same, or may be
        # just now. If not, `documents.ingestion.unnamed` removes its files.
        if not complete:
            delete_files(stored)
        raise
    if not queued:
        settling.finish_run(run.id)
    run.refresh_from_db()
    return run


def _seen_by(
    access: Sequence[str] | None, sources: Iterable[Source | BrokenSource]
) -> Iterable[Source | BrokenSource]:
    for entry in sources:
        if access is not None and isinstance(entry, Source):
            yield replace(entry, access=tuple(access))
        else:
            yield entry


def _require(collection: Collection) -> None:
    if not Collection.objects.filter(pk=collection.pk).exists():
        raise NotFound(f"The collection “{collection.slug}” is gone.")


def _queue_source(entry: Source | BrokenSource, run: IngestionRun, stored: list[str]) -> int | None:
    """Store one source, adding to the files in `stored`; the document's id where a worker must
    look at it."""
    runs.count_on_run(run.id, total=1, bytes=entry.size)
    if isinstance(entry, Source):
        entry = checked_key(entry)
    if isinstance(entry, BrokenSource):
        runs.record_item(run, runs.failure(entry, entry.code, entry.reason))
        return None
    try:
        content = content_of(entry, max_bytes=settings.MAX_UPLOAD_BYTES)
    except ParseError as error:
        runs.record_item(run, runs.failure(entry, error.code, str(error)))
        return None
    recipe = recipes.recipe_of(run.collection).digest(entry.declared)
    document = versions.compared_with(run.collection, [entry.key]).get(entry.key)
    if refusal := admitting.refused(entry, document, user=run.user):
        runs.record_item(run, runs.failure(refusal, refusal.code, refusal.reason))
        return None
    if document is not None and document.is_unchanged(run.policy, content.sha256, recipe):
        runs.record_item(
            run, runs.Outcome(entry, state=IngestionItem.State.SKIPPED, document=document)
        )
        return None
    registered = register_documents(
        run.collection, [entry], run=run, state=IngestionItem.State.WAITING
    )
    document = registered[entry.key]
    replaced = document.file.name
    # The name decides nothing about the path: it is kept in `source`.
    with content.open() as file:
        stored.append(store_file(document, file))
    if replaced:
        transaction.on_commit(lambda: delete_files([replaced]))
    if run.store_once and link(document, source_sha256=content.sha256, recipe=recipe):
        return None
    return document.id


def ingest_inline(
    *,
    collection: Collection,
    sources: Iterable[Source | BrokenSource],
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    source: str = "",
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    suspend_index: bool = False,
    access: Sequence[str] | None = None,
) -> IngestionRun:
    """Ingest in this process; returns the finished run. `access` is as in `ingest_sources`.

    `suspend_index` builds the vector index anew at the end instead of row by row; raises Conflict
    where other collections need it meanwhile, and NotFound for a collection that was deleted.
    """
    listed = checked_access(access, workspace_id=collection.workspace_id)
    source = source if listed is None else LISTED_SOURCE
    try:
        with suspended_index(collection) if suspend_index else nullcontext():
            run = create_run(
                collection=collection, policy=policy, store_once=store_once, source=source
            )
            on_progress(run)
            return InlineIngestion(run, on_progress=on_progress).ingest(_seen_by(listed, sources))
    except (IntegrityError, ObjectDoesNotExist):
        _require(collection)
        raise


def create_run(
    *,
    collection: Collection,
    policy: str,
    store_once: bool = False,
    source: str = "",
    user: Any = None,
) -> IngestionRun:
    """A run's row."""
    run = IngestionRun.objects.create(
        workspace_id=collection.workspace_id,
        collection=collection,
        user=user if getattr(user, "is_authenticated", False) else None,
        policy=policy,
        store_once=store_once,
        source=source[:1024],
    )
    note_change(
        action=Action.INGESTED,
        kind=Kind.RUN,
        workspace_id=collection.workspace_id,
        thing=run.pk,
        collection_id=collection.pk,
        user=run.user,
    )
    return run


def joined_text(chunks: Sequence[Chunk], *, start: int = 0) -> str:
    """The text of a document from offset `start` on, from consecutive chunks in their order."""
    return joined(chunks, start=start)


def document_text(document: Document) -> DocumentText:
    """The whole text, put together from the chunks: each adds what lies behind the one before. Of a
    document that is stored once it is the original's.

    Between two chunks lies only white space, which comes back as one blank line where two
    paragraphs met, so that every chunk's offsets are exact.
    """
    chunks = list(
        Chunk.objects.filter(document=document.text_id)
        .defer("embedding", "search_vector", "metadata")
        .order_by("ordinal")
    )
    return DocumentText(text=joined_text(chunks), chunks=chunks)
