"""Documents: ingested from text and sources, read as text, downloaded. Begin with `ingest_sources`;
`checked_access` validates access lists."""

import re
from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import Group
from django.core.exceptions import ObjectDoesNotExist
from django.db import IntegrityError, transaction
from django.http import FileResponse

from accounts.audit import Action, Kind, record_change
from accounts.models import Membership
from accounts.services import principals
from common.errors import InvalidInput, NotFound
from documents.ingestion import jobs, preparation, registration, versions
from documents.ingestion.concurrency import share_collection_locks
from documents.ingestion.duplicates import make_alias
from documents.ingestion.pipeline import InlineIngestion
from documents.ingestion.registration import register_documents
from documents.ingestion.sources import (
    MAX_METADATA_CHARACTERS,
    BrokenSource,
    Source,
    checked_key,
    read_content,
    text_source,
)
from documents.ingestion.stored_files import delete_files, store_file
from documents.ingestion.text_changes import join_passages
from documents.ingestion.vector_indexes import suspended_index
from documents.models import Chunk, Collection, Document, IngestionItem, IngestionRun
from documents.parsers import ParseError

_PRINCIPAL_NAME = re.compile(r"(user|group):([1-9][0-9]{0,17})", re.ASCII)


def checked_access(
    access: Sequence[str] | None, *, workspace_id: int, user: Any = None
) -> list[str] | None:
    """The access list in its order; None is everybody. Raises InvalidInput for an empty list, for
    unknown users or groups, and for a list without `user`, whose list it is."""
    if access is None:
        return None
    names = sorted(set(access))
    if not names:
        raise InvalidInput(
            "An empty list would hide it from everybody. Give null for everybody in the"
            " workspace, or delete the document.",
            field="access",
        )
    for name in names:
        exists = False
        if match := _PRINCIPAL_NAME.fullmatch(name):
            pk = int(match[2])
            if match[1] == "group":
                exists = Group.objects.filter(pk=pk).exists()
            else:
                exists = Membership.objects.filter(workspace=workspace_id, user=pk).exists()
        if not exists:
            raise InvalidInput(
                f"“{name}” is nobody here. Name members of the workspace as user:ID and groups as"
                " group:ID.",
                field="access",
            )
    if user is not None and not set(names) & set(principals(user)):
        raise InvalidInput(
            f"You could not see the document any more yourself. Add user:{user.pk}.",
            field="access",
        )
    return names


#: Shown to all members as the source of a run whose files only some may see.
RESTRICTED_SOURCE_NAME = "Documents with an access list"


@dataclass(frozen=True, slots=True)
class DocumentText:
    """A document's full text, and the chunks whose offsets point into it."""

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
    """Queue a document given as text; `key` is the caller's own id for it."""
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
    """Store sources and queue them for the workers, all or none.

    `access` lists who may see new documents, such as `user:7`; existing documents keep their lists
    and reject a text meant for fewer people. The run does not name files with an access list.
    Raises InvalidInput for an invalid list, and NotFound for a collection that was deleted.
    """
    listed = checked_access(access, workspace_id=collection.workspace_id, user=user)
    stored: list[str] = []
    complete = False
    try:
        with transaction.atomic():
            share_collection_locks([collection.pk])  # it cannot be deleted from here on
            _require_collection(collection)
            run = create_run(
                collection=collection,
                user=user,
                policy=policy,
                store_once=store_once,
                source=source if listed is None else RESTRICTED_SOURCE_NAME,
            )
            queued = [
                document_id
                for entry in _with_access(listed, sources)
                if (document_id := _queue_source(entry, run, stored)) is not None
            ]
            from documents.tasks import enqueue  # noqa: PLC0415 (loads Celery)

            enqueue(queued)
            complete = True
    except BaseException:
        # One whose connection was cut at its end may have been committed all the same, or may be
        # just now. If not, `documents.ingestion.stored_files` removes its files.
        if not complete:
            delete_files(stored)
        raise
    if not queued:
        jobs.finish_run(run.id)
    run.refresh_from_db()
    return run


def _with_access(
    access: Sequence[str] | None, sources: Iterable[Source | BrokenSource]
) -> Iterable[Source | BrokenSource]:
    for entry in sources:
        if access is not None and isinstance(entry, Source):
            yield replace(entry, access=tuple(access))
        else:
            yield entry


def _require_collection(collection: Collection) -> None:
    if not Collection.objects.filter(pk=collection.pk).exists():
        raise NotFound(f"The collection “{collection.slug}” is gone.")


def _queue_source(entry: Source | BrokenSource, run: IngestionRun, stored: list[str]) -> int | None:
    """Store one source, appending its file to `stored`; returns the document's id if a worker must
    process it."""
    jobs.count_on_run(run.id, total=1, bytes=entry.size)
    if isinstance(entry, Source):
        entry = checked_key(entry)
    if isinstance(entry, BrokenSource):
        jobs.record_items(run, [jobs.failed_outcome(entry, entry.code, entry.reason)])
        return None
    try:
        content = read_content(entry, max_bytes=settings.MAX_UPLOAD_BYTES)
    except ParseError as error:
        jobs.record_items(run, [jobs.failed_outcome(entry, error.code, str(error))])
        return None
    recipe = preparation.recipe_for(run.collection).digest(entry.declared)
    document = versions.documents_to_compare(run.collection, [entry.key]).get(entry.key)
    if refusal := registration.check_access(entry, document, user=run.user):
        jobs.record_items(run, [jobs.failed_outcome(refusal, refusal.code, refusal.reason)])
        return None
    if document is not None and document.is_unchanged(run.policy, content.sha256, recipe):
        jobs.record_items(
            run, [jobs.ItemOutcome(entry, state=IngestionItem.State.SKIPPED, document=document)]
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
    if run.store_once and make_alias(document, source_sha256=content.sha256, recipe=recipe):
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

    `suspend_index` rebuilds the vector index at the end instead of updating it row by row; raises
    Conflict if other collections need it meanwhile, and NotFound for a collection that was deleted.
    """
    listed = checked_access(access, workspace_id=collection.workspace_id)
    source = source if listed is None else RESTRICTED_SOURCE_NAME
    try:
        with suspended_index(collection) if suspend_index else nullcontext():
            run = create_run(
                collection=collection, policy=policy, store_once=store_once, source=source
            )
            on_progress(run)
            return InlineIngestion(run, on_progress=on_progress).ingest(
                _with_access(listed, sources)
            )
    except (IntegrityError, ObjectDoesNotExist):
        _require_collection(collection)
        raise


def create_run(
    *,
    collection: Collection,
    policy: str,
    store_once: bool = False,
    source: str = "",
    user: Any = None,
) -> IngestionRun:
    """Create the row of an ingestion run."""
    run = IngestionRun.objects.create(
        workspace_id=collection.workspace_id,
        collection=collection,
        user=user if getattr(user, "is_authenticated", False) else None,
        policy=policy,
        store_once=store_once,
        source=source[:1024],
    )
    record_change(
        action=Action.INGESTED,
        kind=Kind.RUN,
        workspace_id=collection.workspace_id,
        object_id=run.pk,
        collection_id=collection.pk,
        user=run.user,
    )
    return run


def joined_text(chunks: Sequence[Chunk]) -> str:
    """The text of a document, from its chunks in their order."""
    return join_passages(chunks)


def document_text(document: Document) -> DocumentText:
    """The full text, joined from the chunks. For an alias it is the original's.

    Only white space lies between two chunks; it becomes one blank line between two paragraphs, so
    that every chunk's offsets are exact.
    """
    chunks = list(
        Chunk.objects.filter(document=document.text_id)
        .defer("embedding", "search_vector", "metadata")
        .order_by("ordinal")
    )
    return DocumentText(text=join_passages(chunks), chunks=chunks)


TEXT_SUFFIXES = {"markdown": ".md", "plain": ".txt"}


@dataclass(frozen=True, slots=True)
class OriginalFile:
    """A file to download: `name` has no folders."""

    name: str
    media_type: str
    size: int
    file: IO[bytes]


def open_original(document: Document) -> OriginalFile:
    """The uploaded file. Raises NotFound if it is not stored: files ingested by commands and
    programs are not kept."""
    try:
        if not document.file:
            raise FileNotFoundError
        file: Any = document.file.open("rb")
    except OSError as error:
        raise NotFound(
            "The original file of this document is not stored here: it was brought as text, or by a"
            " command. Its text is here."
        ) from error
    return OriginalFile(
        name=_download_name(document),
        media_type=document.media_type,
        size=document.file.size,
        file=file,
    )


def file_response(original: OriginalFile) -> FileResponse:
    """A response that browsers download instead of displaying, because an upload may contain
    anything."""
    answer = FileResponse(
        original.file,
        as_attachment=True,
        filename=original.name,
        content_type="application/octet-stream",
    )
    answer.headers["X-Content-Type-Options"] = "nosniff"
    answer.headers["Content-Length"] = str(original.size)
    return answer


def text_file(document: Document) -> tuple[str, str]:
    """Name and content of the document's text, with people's edits."""
    stem = PurePosixPath(_download_name(document)).stem or "document"
    return stem + TEXT_SUFFIXES.get(document.rendering, ".txt"), document_text(document).text


def _download_name(document: Document) -> str:
    source = str(document.declared.get("file_name") or document.source or document.key)
    name = PurePosixPath(source.replace("\\", "/")).name
    printable = "".join(letter for letter in name if letter.isprintable())
    return printable.strip(". ")[:200] or f"document-{document.pk}"
