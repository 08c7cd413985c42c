"""The stages as the queues run them: `ingest` parses and cuts, `embed` embeds and loads.

Each takes document ids, claims what still waits, and may be run twice or killed at any line.
"""

from collections.abc import Iterator, Sequence
from uuid import UUID

from django.conf import settings
from django.db import transaction

from documents.ingestion import claims, runs
from documents.ingestion.contents import Content, content_of_stored
from documents.ingestion.groups import grouped, load_groups
from documents.ingestion.loading import Job
from documents.ingestion.packing import pack, unpack
from documents.ingestion.preparing import PreparedDocument
from documents.ingestion.recipes import prepare_for, recipe_of
from documents.ingestion.settling import fail, finish_runs, gave_up
from documents.ingestion.stopwatch import Stopwatch
from documents.models import Document, IngestionItem, StagedDocument
from documents.parsers import ParseError


def parse_documents(document_ids: Sequence[int]) -> list[int]:
    """Parse and cut the stored files of waiting documents; returns those to embed."""
    token, documents = claims.claim(document_ids)
    with claims.kept(token):
        staged = [document.id for document in documents if _parse_document(document, token)]
    finish_runs(document_ids)
    return staged


def _parse_document(document: Document, token: UUID) -> bool:
    """True where the document has chunks that wait for their vectors."""
    watch = Stopwatch()
    runs.mark_items([document.id], state=IngestionItem.State.PARSING)
    if gave_up(document, token):
        return False
    try:
        with watch("parse"):
            content = _stored_content(document)
        prepared = prepare_for(
            document.collection,
            content,
            name=document.source or document.key,
            declared=document.declared,
            watch=watch,
        )
    except ParseError as error:
        fail([document.id], code=error.code, message=str(error), token=token)
        return False
    runs.add_timings(runs.open_runs([document.id]), watch.seconds)
    return _stage(document, prepared, content.sha256, token)


def _stored_content(document: Document) -> Content:
    name = document.source or document.key
    try:
        return content_of_stored(document.file, name=name, max_bytes=settings.MAX_UPLOAD_BYTES)
    except (OSError, ValueError) as error:
        raise ParseError(
            "truncated",
            f"The stored file of {name} cannot be read ({error}). Upload it again.",
        ) from error


@transaction.atomic
def _stage(document: Document, prepared: PreparedDocument, digest: str, token: UUID) -> bool:
    held = Document.objects.select_for_update().filter(id=document.id, claimed_by=token)
    if not held.exists():
        return False
    StagedDocument.objects.update_or_create(
        document=document,
        defaults={"workspace_id": document.workspace_id, "payload": pack(prepared)},
    )
    held.update(source_sha256=digest, attempts=0)
    runs.mark_items([document.id], state=IngestionItem.State.EMBEDDING)
    return True


def embed_documents(document_ids: Sequence[int]) -> None:
    """Embed and load staged documents, in groups across documents."""
    # Only what is staged: a document that was replaced belongs to the `ingest` queue again.
    waiting = StagedDocument.objects.filter(document_id__in=document_ids)
    token, documents = claims.claim(waiting.values_list("document_id", flat=True))
    with claims.kept(token):
        for _ in load_groups(grouped(_staged_jobs(documents, token)), token=token):
            pass
    finish_runs(document_ids)


def _staged_jobs(documents: Sequence[Document], token: UUID) -> Iterator[Job]:
    """One after the other: all of a message's together may be more than fits into memory."""
    for document in sorted(documents, key=lambda document: document.collection.space_id):
        staged = StagedDocument.objects.filter(document=document).first()
        if staged is not None and not gave_up(document, token):
            yield Job(
                document=document,
                prepared=unpack(bytes(staged.payload)),
                digest=recipe_of(document.collection).digest(document.declared),
                source_sha256=document.source_sha256,
            )
