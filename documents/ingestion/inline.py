"""Ingestion inside the calling process: what commands do, with bounded memory.

Three stages at once: a thread parses and cuts, a thread embeds, and the caller's own loads. Only
the last uses the database, so all of it is in the caller's connection.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction

from common.deadlocks import despite_deadlocks
from documents.ingestion import (
    admitting,
    claims,
    groups,
    linking,
    listeners,
    recipes,
    runs,
    settling,
    versions,
)
from documents.ingestion.ahead import ahead
from documents.ingestion.batches import Entry, batches, segments
from documents.ingestion.contents import Content, content_of
from documents.ingestion.loading import Job
from documents.ingestion.preparing import PreparedDocument, Recipe
from documents.ingestion.registering import register_documents
from documents.ingestion.sources import BrokenSource, Source, checked_key
from documents.ingestion.stopwatch import Stopwatch
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.parsers import ParseError

State = IngestionItem.State

#: Bytes of sources that are parsed ahead of the model, unless one alone is larger.
PARSED_AHEAD = 16 * 1024 * 1024
#: A small file is held as a thing too.
BYTES_A_SOURCE = 64 * 1024


@dataclass(frozen=True, slots=True)
class _Changed:
    """A source that must be ingested, read."""

    source: Source
    content: Content
    document: Document | None


@dataclass(frozen=True, slots=True)
class _Prepared:
    """What became of it in the parser."""

    document: PreparedDocument | ParseError
    seconds: dict[str, float]


_Ready = tuple[_Changed, PreparedDocument]


class InlineIngestion:
    """Takes sources through all stages.

    `on_progress` is called with the run whenever something has become of some of them.
    """

    def __init__(
        self, run: IngestionRun, *, on_progress: Callable[[IngestionRun], Any] = lambda run: None
    ) -> None:
        self.run = run
        self.collection: Collection = run.collection
        self.recipe: Recipe = recipes.recipe_of(self.collection)
        self.on_progress = on_progress
        self._seconds: Counter[str] = Counter()

    def ingest(self, sources: Iterable[Entry]) -> IngestionRun:
        """Work through `sources`; the run is finished when this returns, or cancelled.

        Raises inference.base.InferenceError where the model does not work.
        """
        token = uuid4()
        with suppress(runs.RunCancelled), claims.kept(token):
            for segment in segments(sources):
                registered = self._registered(self._prepared(self._changed(segment)), token)
                for jobs in groups.load_groups(registered, token=token):
                    listeners.ingested([job.document.id for job in jobs])
                    self._finish_others(jobs)
                    self._show()
        self._note_seconds()
        settling.finish_run(self.run.id)
        self.run.refresh_from_db()
        return self.run

    def _finish_others(self, jobs: Sequence[Job]) -> None:
        """Runs that waited for the same documents, whose own claims ended when these came."""
        for run_id in runs.open_runs([job.document.id for job in jobs]):
            if run_id != self.run.id:
                settling.finish_run(run_id)

    def _show(self) -> None:
        self._note_seconds()
        self.run.refresh_from_db()
        self.on_progress(self.run)
        if self.run.cancel_requested_at is not None:
            raise runs.RunCancelled

    def _note_seconds(self) -> None:
        runs.add_timings([self.run.id], dict(self._seconds))
        self._seconds.clear()

    def _changed(self, sources: Iterable[Entry]) -> Iterator[_Changed]:
        """The sources that must be ingested; what became of the others is recorded."""
        for batch in batches(sources):
            size = sum(entry.size for entry in batch)
            runs.expect(self.run.id, total=len(batch), size=size)
            keys = [entry.key for entry in batch if isinstance(entry, Source)]
            known = versions.compared_with(self.collection, keys)
            looked_at = [self._look_at(entry, known) for entry in batch]
            settled = [result for result in looked_at if isinstance(result, runs.Outcome)]
            if settled:
                runs.record_items(self.run, settled)
                self._show()
            yield from (result for result in looked_at if isinstance(result, _Changed))

    def _look_at(self, entry: Entry, known: dict[str, Document]) -> _Changed | runs.Outcome | None:
        if isinstance(entry, Source):
            entry = checked_key(entry)
        if isinstance(entry, BrokenSource):
            return runs.failure(entry, entry.code, entry.reason)
        document = known.get(entry.key)
        try:
            content = content_of(entry, max_bytes=settings.MAX_UPLOAD_BYTES)
        except ParseError as error:
            return runs.failure(entry, error.code, str(error), document)
        if refusal := admitting.refused(entry, document, user=self.run.user):
            return runs.failure(refusal, refusal.code, refusal.reason)
        recipe = self.recipe.digest(entry.declared)
        if document is not None and document.is_unchanged(self.run.policy, content.sha256, recipe):
            return runs.Outcome(entry, state=State.SKIPPED, document=document)
        if self.run.store_once and self._link(entry, content.sha256, recipe):
            return None
        return _Changed(entry, content, document)

    @transaction.atomic
    def _link(self, source: Source, source_sha256: str, recipe: str) -> bool:
        """Make the source a document that leans on one with its bytes, if there is one."""
        if not linking.is_known(self.collection, source_sha256):
            return False
        sources = register_documents(self.collection, [source], run=self.run, state=State.EMBEDDING)
        if linking.link(sources[source.key], source_sha256=source_sha256, recipe=recipe):
            return True
        transaction.set_rollback(True)
        return False

    def _prepared(self, changed: Iterable[_Changed]) -> Iterator[_Ready]:
        """Parsed and cut ahead of the caller; failures are recorded."""
        for entry, prepared in ahead(self._prepare, changed, room=PARSED_AHEAD, size=_weight):
            self._seconds.update(prepared.seconds)
            if isinstance(prepared.document, ParseError):
                error = prepared.document
                outcome = runs.failure(entry.source, error.code, str(error), entry.document)
                runs.record_item(self.run, outcome)
            else:
                yield entry, prepared.document

    def _prepare(self, changed: _Changed) -> _Prepared:
        """Runs beside the caller: uses no database."""
        watch = Stopwatch()
        document: PreparedDocument | ParseError
        try:
            document = recipes.prepare_for(
                self.collection,
                changed.content,
                name=changed.source.name,
                declared=changed.source.declared,
                watch=watch,
            )
        except ParseError as error:
            document = error
        return _Prepared(document, watch.seconds)

    def _registered(self, ready: Iterable[_Ready], token: UUID) -> Iterator[Sequence[Job]]:
        """Claimed jobs with a row and an open item each, about GROUP_CHUNKS chunks at a time."""
        group: list[_Ready] = []
        chunks = 0
        for entry in ready:
            group.append(entry)
            chunks += len(entry[1].chunks)
            if chunks >= groups.GROUP_CHUNKS or len(group) >= groups.GROUP_CHUNKS:
                yield from groups.grouped(self._register(group, token))
                group, chunks = [], 0
        if group:
            yield from groups.grouped(self._register(group, token))

    def _register(self, ready: Sequence[_Ready], token: UUID) -> list[Job]:
        return despite_deadlocks(partial(self._register_once, ready, token))

    @transaction.atomic
    def _register_once(self, ready: Sequence[_Ready], token: UUID) -> list[Job]:
        sources = [changed.source for changed, _ in ready]
        # As of now: it may be of another space since the run began.
        collection = Collection.objects.select_related("space").get(pk=self.collection.pk)
        registered = register_documents(
            collection, sources, run=self.run, state=State.EMBEDDING, token=token
        )
        runs.hold_open(self.run.id)
        return [
            Job(
                document=registered[changed.source.key],
                prepared=prepared,
                digest=self.recipe.digest(changed.source.declared),
                source_sha256=changed.content.sha256,
            )
            for changed, prepared in ready
        ]


def _weight(changed: _Changed) -> int:
    return max(changed.source.size, BYTES_A_SOURCE)
