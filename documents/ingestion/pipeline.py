"""The stages a file goes through: for workers `parse_documents` and `embed_documents`, which take
document ids and may be run twice or killed at any line; for commands `InlineIngestion`, all stages
in one process with bounded memory."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from common.leases import retry_on_deadlock
from documents.ingestion import (
    duplicates,
    jobs,
    listeners,
    loader,
    preparation,
    registration,
    versions,
)
from documents.ingestion.concurrency import Stopwatch, prefetch
from documents.ingestion.loader import LoadJob, group_jobs, load_groups
from documents.ingestion.preparation import (
    PreparedDocument,
    Recipe,
    pack_document,
    prepare_for,
    recipe_for,
    unpack_document,
)
from documents.ingestion.registration import register_documents
from documents.ingestion.sources import (
    BrokenSource,
    Content,
    Entry,
    Source,
    checked_key,
    content_from_storage,
    read_content,
    split_batches,
    split_segments,
)
from documents.models import Collection, Document, IngestionItem, IngestionRun, StagedDocument
from documents.parsers import ParseError


def parse_documents(document_ids: Sequence[int]) -> list[int]:
    """Parse and cut the stored files of waiting documents; returns those to embed."""
    token, documents = jobs.claim(document_ids)
    with jobs.lease_renewal(token):
        staged = [document.id for document in documents if _parse_document(document, token)]
    jobs.finish_runs(document_ids)
    return staged


def _parse_document(document: Document, token: UUID) -> bool:
    """True if the document now has chunks to embed."""
    watch = Stopwatch()
    jobs.set_item_state([document.id], state=IngestionItem.State.PARSING)
    if jobs.fail_after_max_attempts(document, token):
        return False
    name = document.source or document.key
    try:
        with watch("parse"):
            try:
                content = content_from_storage(
                    document.file, name=name, max_bytes=settings.MAX_UPLOAD_BYTES
                )
            except (OSError, ValueError) as error:
                raise ParseError(
                    "truncated",
                    f"The stored file of {name} cannot be read ({error}). Upload it again.",
                ) from error
        prepared = prepare_for(
            document.collection,
            content,
            name=name,
            declared=document.declared,
            watch=watch,
        )
    except ParseError as error:
        jobs.fail_documents([document.id], code=error.code, message=str(error), token=token)
        return False
    jobs.add_timings(jobs.open_runs([document.id]), watch.seconds)
    return _store_staged(document, prepared, content.sha256, token)


@transaction.atomic
def _store_staged(document: Document, prepared: PreparedDocument, digest: str, token: UUID) -> bool:
    held = Document.objects.select_for_update().filter(id=document.id, claimed_by=token)
    if not held.exists():
        return False
    StagedDocument.objects.update_or_create(
        document=document,
        defaults={"workspace_id": document.workspace_id, "payload": pack_document(prepared)},
    )
    held.update(source_sha256=digest, attempts=0)
    jobs.set_item_state([document.id], state=IngestionItem.State.EMBEDDING)
    return True


def embed_documents(document_ids: Sequence[int]) -> None:
    """Embed and load staged documents, in groups across documents."""
    # Only what is staged: a document that was replaced belongs to the `ingest` queue again.
    waiting = StagedDocument.objects.filter(document_id__in=document_ids)
    token, documents = jobs.claim(waiting.values_list("document_id", flat=True))
    with jobs.lease_renewal(token):
        for _ in load_groups(group_jobs(_staged_jobs(documents, token)), token=token):
            pass
    jobs.finish_runs(document_ids)


def _staged_jobs(documents: Sequence[Document], token: UUID) -> Iterator[LoadJob]:
    """One at a time, because all of a message's documents may not fit into memory."""
    for document in sorted(documents, key=lambda document: document.collection.space_id):
        staged = StagedDocument.objects.filter(document=document).first()
        if staged is not None and not jobs.fail_after_max_attempts(document, token):
            yield LoadJob(
                document=document,
                prepared=unpack_document(bytes(staged.payload)),
                digest=recipe_for(document.collection).digest(document.declared),
                source_sha256=document.source_sha256,
            )


State = IngestionItem.State

#: Bytes of sources that are parsed ahead of the model, unless one alone is larger.
PREFETCHED_BYTES = 16 * 1024 * 1024
#: Minimum weight of a source: small files have overhead too.
MIN_SOURCE_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class _ChangedSource:
    """A source that must be ingested, with its content."""

    source: Source
    content: Content
    document: Document | None


_ReadyDocument = tuple[_ChangedSource, PreparedDocument]


class InlineIngestion:
    """Takes sources through all stages in the calling process, with bounded memory.

    Three stages at once: a thread parses and chunks, a thread embeds, and the caller's own loads.
    Only the last uses the database, through the caller's connection. `on_progress` is called with
    the run whenever its counts change.
    """

    def __init__(
        self, run: IngestionRun, *, on_progress: Callable[[IngestionRun], Any] = lambda run: None
    ) -> None:
        self.run = run
        self.collection: Collection = run.collection
        self.recipe: Recipe = preparation.recipe_for(self.collection)
        self.on_progress = on_progress
        self._seconds: Counter[str] = Counter()

    def ingest(self, sources: Iterable[Entry]) -> IngestionRun:
        """Process `sources`; the run is finished or cancelled when this returns.

        Raises inference.interfaces.InferenceError if the model does not work.
        """
        token = uuid4()
        with suppress(jobs.RunCancelled), jobs.lease_renewal(token):
            for segment in split_segments(sources):
                registered = self._registered(self._prepared(self._changed(segment)), token)
                for loaded in loader.load_groups(registered, token=token):
                    document_ids = [job.document.id for job in loaded]
                    listeners.ingested(document_ids)
                    # End other runs that waited for the same documents; their claims ended when
                    # these were claimed.
                    for run_id in jobs.open_runs(document_ids):
                        if run_id != self.run.id:
                            jobs.finish_run(run_id)
                    self._show()
        self._note_seconds()
        jobs.finish_run(self.run.id)
        self.run.refresh_from_db()
        return self.run

    def _show(self) -> None:
        self._note_seconds()
        self.run.refresh_from_db()
        self.on_progress(self.run)
        if self.run.cancel_requested_at is not None:
            raise jobs.RunCancelled

    def _note_seconds(self) -> None:
        jobs.add_timings([self.run.id], dict(self._seconds))
        self._seconds.clear()

    def _changed(self, sources: Iterable[Entry]) -> Iterator[_ChangedSource]:
        """The sources that must be ingested; the outcome of the others is recorded."""
        for batch in split_batches(sources):
            size = sum(entry.size for entry in batch)
            jobs.add_expected_files(self.run.id, total=len(batch), size=size)
            keys = [entry.key for entry in batch if isinstance(entry, Source)]
            known = versions.documents_to_compare(self.collection, keys)
            looked_at = [self._check_source(entry, known) for entry in batch]
            settled = [result for result in looked_at if isinstance(result, jobs.ItemOutcome)]
            if settled:
                jobs.record_items(self.run, settled)
                self._show()
            yield from (result for result in looked_at if isinstance(result, _ChangedSource))

    def _check_source(
        self, entry: Entry, known: dict[str, Document]
    ) -> _ChangedSource | jobs.ItemOutcome | None:
        if isinstance(entry, Source):
            entry = checked_key(entry)
        if isinstance(entry, BrokenSource):
            return jobs.failed_outcome(entry, entry.code, entry.reason)
        document = known.get(entry.key)
        try:
            content = read_content(entry, max_bytes=settings.MAX_UPLOAD_BYTES)
        except ParseError as error:
            return jobs.failed_outcome(entry, error.code, str(error), document)
        if refusal := registration.check_access(entry, document, user=self.run.user):
            return jobs.failed_outcome(refusal, refusal.code, refusal.reason)
        recipe = self.recipe.digest(entry.declared)
        if document is not None and document.is_unchanged(self.run.policy, content.sha256, recipe):
            return jobs.ItemOutcome(entry, state=State.SKIPPED, document=document)
        if self.run.store_once and self._link(entry, content.sha256, recipe):
            return None
        return _ChangedSource(entry, content, document)

    @transaction.atomic
    def _link(self, source: Source, source_sha256: str, recipe: str) -> bool:
        """Make the source an alias of a document with its bytes, if there is one."""
        if not duplicates.has_bytes(self.collection, source_sha256):
            return False
        sources = register_documents(self.collection, [source], run=self.run, state=State.EMBEDDING)
        if duplicates.make_alias(sources[source.key], source_sha256=source_sha256, recipe=recipe):
            return True
        transaction.set_rollback(True)
        return False

    def _prepared(self, changed: Iterable[_ChangedSource]) -> Iterator[_ReadyDocument]:
        """Parsed and chunked ahead of the caller; failures are recorded."""
        for entry, (prepared, seconds) in prefetch(
            self._prepare,
            changed,
            room=PREFETCHED_BYTES,
            size=lambda changed: max(changed.source.size, MIN_SOURCE_BYTES),
        ):
            self._seconds.update(seconds)
            if isinstance(prepared, ParseError):
                outcome = jobs.failed_outcome(
                    entry.source, prepared.code, str(prepared), entry.document
                )
                jobs.record_items(self.run, [outcome])
            else:
                yield entry, prepared

    def _prepare(
        self, changed: _ChangedSource
    ) -> tuple[PreparedDocument | ParseError, dict[str, float]]:
        """The result and the seconds of each stage. Runs beside the caller, so it uses no
        database."""
        watch = Stopwatch()
        document: PreparedDocument | ParseError
        try:
            document = preparation.prepare_for(
                self.collection,
                changed.content,
                name=changed.source.name,
                declared=changed.source.declared,
                watch=watch,
            )
        except ParseError as error:
            document = error
        return document, watch.seconds

    def _registered(
        self, ready: Iterable[_ReadyDocument], token: UUID
    ) -> Iterator[Sequence[LoadJob]]:
        """Claimed jobs with a row and an open item each, about GROUP_CHUNKS chunks at a time."""
        group: list[_ReadyDocument] = []
        chunks = 0
        for entry in ready:
            group.append(entry)
            chunks += len(entry[1].chunks)
            if chunks >= loader.GROUP_CHUNKS or len(group) >= loader.GROUP_CHUNKS:
                yield from loader.group_jobs(self._register(group, token))
                group, chunks = [], 0
        if group:
            yield from loader.group_jobs(self._register(group, token))

    def _register(self, ready: Sequence[_ReadyDocument], token: UUID) -> list[LoadJob]:
        return retry_on_deadlock(partial(self._register_in_transaction, ready, token))

    @transaction.atomic
    def _register_in_transaction(
        self, ready: Sequence[_ReadyDocument], token: UUID
    ) -> list[LoadJob]:
        sources = [changed.source for changed, _ in ready]
        # As of now: it may be of another space since the run began.
        collection = Collection.objects.select_related("space").get(pk=self.collection.pk)
        registered = register_documents(
            collection, sources, run=self.run, state=State.EMBEDDING, token=token
        )
        jobs.lock_open_run(self.run.id)
        return [
            LoadJob(
                document=registered[changed.source.key],
                prepared=prepared,
                digest=self.recipe.digest(changed.source.declared),
                source_sha256=changed.content.sha256,
            )
            for changed, prepared in ready
        ]
