"""The stages a file goes through: for workers `parse_documents` and `embed_documents`, which take
document ids and may be run twice or killed at any line; for commands `InlineIngestion`, all stages
in one process with bounded memory."""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from common.leases import retry_on_deadlock
from documents.ingestion import duplicates, jobs, listeners, loader, versions
from documents.ingestion.concurrency import Stopwatch, prefetch
from documents.ingestion.embedding import LONG_DOCUMENT_CHUNKS, TextsLeft
from documents.ingestion.loader import LoadJob, group_jobs, load_groups
from documents.ingestion.preparation import (
    PagesUnread,
    PreparedDocument,
    Recipe,
    pack_document,
    prepare_for,
    recipe_for,
    unpack_document,
)
from documents.ingestion.registration import read_if_changed, register_documents
from documents.ingestion.scanned_pages import ClaimLost, PageReading, PagesLeft, PageTexts
from documents.ingestion.sources import (
    Content,
    Entry,
    Source,
    content_from_storage,
    split_batches,
    split_segments,
)
from documents.ingestion.stored_files import has_own_look, replace_file, storing_transaction
from documents.models import Collection, Document, IngestionItem, IngestionRun, StagedDocument
from reading.parsers import ParseError

State = IngestionItem.State


#: A document whose pages take OCR longer lets others go before, and is continued afterwards.
OCR_SLICE_SECONDS = 15.0


def parse_documents(
    document_ids: Sequence[int], *, defer: Callable[[int], object] | None = None
) -> list[int]:
    """Parse and cut the stored files of waiting documents; returns those to embed.

    With `defer` none waits long for the OCR of another: of several documents those with pages to
    read are left to it, and a single one after OCR_SLICE_SECONDS.
    """
    token, documents = jobs.claim(document_ids)
    staged: list[int] = []
    with jobs.lease_renewal(token):
        for document in documents:
            if _parse_document(document, token, defer, is_alone=len(documents) == 1):
                staged.append(document.id)
    jobs.finish_runs(document_ids)
    return staged


def _parse_document(
    document: Document, token: UUID, defer: Callable[[int], object] | None, *, is_alone: bool
) -> bool:
    """True if the document now has chunks to embed."""
    watch = Stopwatch()
    jobs.set_item_state([document.id], state=State.PARSING)
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
        reading = PageReading(document, content, name=name, token=token)
        seconds = math.inf if defer is None else OCR_SLICE_SECONDS
        prepared = prepare_for(
            document.collection,
            content,
            name=name,
            declared=document.declared,
            watch=watch,
            read_pages=partial(reading.read, seconds=seconds) if is_alone or not defer else None,
        )
    except ParseError as error:
        jobs.fail_documents([document.id], code=error.code, message=str(error), token=token)
        return False
    except (PagesUnread, PagesLeft):
        assert defer is not None
        jobs.add_timings(jobs.open_runs([document.id]), watch.seconds)
        if jobs.put_back(document.id, token=token):
            defer(document.id)
        return False
    except ClaimLost:
        return False
    jobs.add_timings(jobs.open_runs([document.id]), watch.seconds)
    with transaction.atomic():
        held = Document.objects.select_for_update().filter(id=document.id, claimed_by=token)
        if not held.exists():
            return False
        StagedDocument.objects.update_or_create(
            document=document,
            defaults={"workspace_id": document.workspace_id, "payload": pack_document(prepared)},
        )
        held.update(source_sha256=content.sha256, attempts=0)
        jobs.set_item_state([document.id], state=State.EMBEDDING)
    return True


def without_vectors(document_ids: Iterable[int]) -> list[int]:
    """Those of these documents whose collections have no vectors."""
    ids = [*document_ids]
    bare = [
        collection
        for collection in Collection.objects.filter(documents__in=ids).distinct()
        if not collection.has_vectors
    ]
    rows = Document.objects.filter(pk__in=ids, collection__in=bare).order_by("pk")
    return list(rows.values_list("pk", flat=True))


#: A long document that takes the model longer lets others go before, and is continued afterwards.
EMBEDDING_TURN_SECONDS = 10.0


def embed_documents(
    document_ids: Sequence[int], *, defer: Callable[[int], object] | None = None
) -> None:
    """Embed and load staged documents, in groups across documents.

    With `defer` none waits long for another: of several documents the long ones are left to it, and
    a single one after EMBEDDING_TURN_SECONDS.
    """
    # Only what is staged: a document that was replaced belongs to the `ingest` queue again.
    waiting = StagedDocument.objects.filter(document_id__in=document_ids)
    token, documents = jobs.claim(waiting.values_list("document_id", flat=True))
    is_alone = len(documents) == 1
    deferred: list[int] = []

    def staged_jobs() -> Iterator[LoadJob]:
        """One at a time, because all of a message's documents may not fit into memory."""
        for document in sorted(documents, key=lambda document: document.collection.space_id):
            staged = StagedDocument.objects.filter(document=document).first()
            if staged is None or jobs.fail_after_max_attempts(document, token):
                continue
            prepared = unpack_document(bytes(staged.payload))
            if defer and not is_alone and len(prepared.chunks) > LONG_DOCUMENT_CHUNKS:
                deferred.append(document.id)
                continue
            yield LoadJob(
                document=document,
                prepared=prepared,
                digest=recipe_for(document.collection).digest(document.declared),
                source_sha256=document.source_sha256,
            )

    seconds = math.inf if defer is None else EMBEDDING_TURN_SECONDS
    with jobs.lease_renewal(token):
        try:
            for _ in load_groups(group_jobs(staged_jobs()), token=token, seconds=seconds):
                pass
        except TextsLeft:
            deferred += [document.id for document in documents]
        for document_id in deferred:
            if defer and jobs.put_back(document_id, token=token):
                defer(document_id)
    jobs.finish_runs(document_ids)


#: Bytes of sources that are parsed ahead of the model, unless one alone is larger.
PREFETCHED_BYTES = 16 * 1024 * 1024
#: Minimum weight of a source: small files have overhead too.
MIN_SOURCE_BYTES = 64 * 1024


def _keep_file(
    document: Document,
    content: Content,
    *,
    known: Document | None,
    stores_file: bool,
    stored: list[str],
) -> None:
    """Store the file of a document that was just registered if `stores_file`; none takes the place
    of another one. The same bytes are not stored again: `known` is the row as it was when they were
    compared."""
    if known is not None and known.pk == document.pk and document.file:
        is_loaded = known.status == Document.Status.READY and known.file == document.file
        if is_loaded and known.source_sha256 == content.sha256:
            return
    replace_file(document, content if stores_file else None, stored)


#: A source that must be ingested, with its content and the document with its key.
_Changed = tuple[Source, Content, Document | None]
_Ready = tuple[_Changed, PreparedDocument]


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
        self.recipe: Recipe = recipe_for(self.collection)
        self.on_progress = on_progress
        self._seconds: Counter[str] = Counter()
        #: Documents that have their row since OCR read them, by key.
        self._registered_before: dict[str, Document] = {}

    def ingest(self, sources: Iterable[Entry]) -> IngestionRun:
        """Process `sources`; the run is finished or cancelled when this returns.

        Raises inference.interfaces.InferenceError if the model does not work.
        """
        token = uuid4()
        with suppress(jobs.RunCancelled), jobs.lease_renewal(token):
            for segment in split_segments(sources):
                prepared = self._prepared(self._changed(segment), token)
                registered = self._registered(prepared, token)
                for loaded in load_groups(registered, token=token):
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

    def _changed(self, sources: Iterable[Entry]) -> Iterator[_Changed]:
        """The sources that must be ingested; the outcome of the others is recorded."""
        for batch in split_batches(sources):
            size = sum(entry.size for entry in batch)
            jobs.add_expected_files(self.run.id, total=len(batch), size=size)
            found_sources = [entry for entry in batch if isinstance(entry, Source)]
            keys = {key for each in found_sources for key in (each.key, each.part_of) if key}
            known = versions.documents_to_compare(self.collection, keys)
            settled: list[IngestionItem] = []
            changed: list[_Changed] = []
            for entry in batch:
                found = read_if_changed(self.run, entry, known, self.recipe)
                if isinstance(found, IngestionItem):
                    settled.append(found)
                elif isinstance(entry, Source) and not (
                    self.run.store_once and self._link(entry, found)
                ):
                    changed.append((entry, found, known.get(entry.key)))
            if settled:
                jobs.record_items(self.run, settled)
                self._show()
            yield from changed

    def _link(self, source: Source, content: Content) -> bool:
        """Make the source an alias of a document with its bytes, if there is one."""
        if not duplicates.has_bytes(self.collection, content.sha256):
            return False
        with storing_transaction() as stored:
            sources = register_documents(
                self.collection, [source], run=self.run, state=State.EMBEDDING
            )
            document, recipe = sources[source.key], self.recipe.digest(source.declared)
            if duplicates.make_alias(document, source_sha256=content.sha256, recipe=recipe):
                stores_file = has_own_look(document.media_type)
                _keep_file(document, content, known=None, stores_file=stores_file, stored=stored)
                return True
            transaction.set_rollback(True)
        return False

    def _prepared(self, changed: Iterable[_Changed], token: UUID) -> Iterator[_Ready]:
        """Parsed and chunked ahead of the caller; failures are recorded."""

        def prepare(
            changed: _Changed,
        ) -> tuple[PreparedDocument | ParseError | PagesUnread, dict[str, float]]:
            # Runs beside the caller, so it uses no database.
            source, content, _ = changed
            watch = Stopwatch()
            document: PreparedDocument | ParseError | PagesUnread
            try:
                document = prepare_for(
                    self.collection,
                    content,
                    name=source.name,
                    declared=source.declared,
                    watch=watch,
                )
            except (ParseError, PagesUnread) as error:
                document = error
            return document, watch.seconds

        for entry, (prepared, seconds) in prefetch(
            prepare,
            changed,
            room=PREFETCHED_BYTES,
            size=lambda changed: max(changed[0].size, MIN_SOURCE_BYTES),
        ):
            self._seconds.update(seconds)
            if isinstance(prepared, PagesUnread):
                if (read := self._with_pages_read(entry, token)) is not None:
                    yield entry, read
            elif isinstance(prepared, ParseError):
                source, _, document = entry
                item = jobs.settled_item(
                    source, code=prepared.code, reason=str(prepared), document=document
                )
                jobs.record_items(self.run, [item])
            else:
                yield entry, prepared

    def _with_pages_read(self, changed: _Changed, token: UUID) -> PreparedDocument | None:
        """Prepare a document with pages for OCR, which are kept with its row: that is made now. A
        failure is recorded, and gives None."""
        source, content, known = changed
        with storing_transaction() as stored:
            registered = register_documents(
                self.collection, [source], run=self.run, state=State.PARSING, token=token
            )
            document = registered[source.key]
            # Workers go on with it if this process is killed.
            _keep_file(document, content, known=known, stores_file=True, stored=stored)
            jobs.lock_open_run(self.run.id)

        def read_pages(numbers: Sequence[int]) -> PageTexts:
            reading = PageReading(document, content, name=source.name, token=token)
            return reading.read(numbers, on_page=self._show)

        watch = Stopwatch()
        try:
            prepared = prepare_for(
                self.collection,
                content,
                name=source.name,
                declared=source.declared,
                watch=watch,
                read_pages=read_pages,
            )
        except ParseError as error:
            jobs.fail_documents([document.id], code=error.code, message=str(error), token=token)
            return None
        except ClaimLost:
            self._show()  # ends the run if that was cancelled
            return None
        finally:
            self._seconds.update(watch.seconds)
        self._registered_before[source.key] = document
        return prepared

    def _registered(self, ready: Iterable[_Ready], token: UUID) -> Iterator[Sequence[LoadJob]]:
        """Claimed jobs with a row and an open item each, about GROUP_CHUNKS chunks at a time."""
        group: list[_Ready] = []
        chunks = 0
        for entry in ready:
            group.append(entry)
            chunks += len(entry[1].chunks)
            if chunks >= loader.GROUP_CHUNKS or len(group) >= loader.GROUP_CHUNKS:
                yield from group_jobs(self._register(group, token))
                group, chunks = [], 0
        if group:
            yield from group_jobs(self._register(group, token))

    def _register(self, ready: Sequence[_Ready], token: UUID) -> list[LoadJob]:
        def register() -> list[LoadJob]:
            with storing_transaction() as stored:
                return register_and_store(stored)

        def register_and_store(stored: list[str]) -> list[LoadJob]:
            # As of now: it may be of another space since the run began.
            collection = Collection.objects.select_related("space").get(pk=self.collection.pk)
            self.recipe = replace(
                self.recipe, space_id=collection.space_id, model_name=collection.space.model_name
            )
            before = self._registered_before
            registered = before | register_documents(
                collection,
                [source for (source, _, _), _ in ready if source.key not in before],
                run=self.run,
                state=State.EMBEDDING,
                token=token,
            )
            for (source, content, known), prepared in ready:
                if source.key not in before:
                    _keep_file(
                        registered[source.key],
                        content,
                        known=known,
                        stores_file=has_own_look(prepared.media_type),
                        stored=stored,
                    )
            read = [before[source.key].id for (source, _, _), _ in ready if source.key in before]
            jobs.set_item_state(read, state=State.EMBEDDING)
            jobs.lock_open_run(self.run.id)
            return [
                LoadJob(
                    document=registered[source.key],
                    prepared=prepared,
                    digest=self.recipe.digest(source.declared),
                    source_sha256=content.sha256,
                )
                for (source, content, _), prepared in ready
            ]

        return retry_on_deadlock(register)
