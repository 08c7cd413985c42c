"""Ingestion inside the calling process: what commands do, with bounded memory."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.db import transaction

from documents.ingestion import claims, runs, stages
from documents.ingestion.loading import Job
from documents.ingestion.preparing import PreparedDocument, Recipe
from documents.ingestion.registering import register_documents
from documents.ingestion.sources import BrokenSource, Source, checked_key, sha256
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.parsers import ParseError

State = IngestionItem.State

BATCH_FILES = 256
BATCH_BYTES = 16 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class _Ready:
    """A source that was parsed and must be embedded."""

    source: Source
    prepared: PreparedDocument
    source_sha256: str


class InlineIngestion:
    """Takes sources through all stages, batch by batch.

    `on_progress` is called with the run after every batch.
    """

    def __init__(
        self, run: IngestionRun, *, on_progress: Callable[[IngestionRun], Any] = lambda run: None
    ) -> None:
        self.run = run
        self.collection: Collection = run.collection
        self.recipe: Recipe = stages.recipe_of(self.collection)
        self.on_progress = on_progress

    def ingest(self, sources: Iterable[Source | BrokenSource]) -> IngestionRun:
        """Work through `sources`; the run is finished when this returns.

        Raises inference.base.InferenceError where the model does not work.
        """
        for batch in _batches(sources):
            self._ingest_batch(batch)
            self.run.refresh_from_db()
            self.on_progress(self.run)
        stages.finish_run(self.run.id)
        self.run.refresh_from_db()
        return self.run

    def _ingest_batch(self, batch: list[Source | BrokenSource]) -> None:
        runs.count_on_run(self.run.id, total=len(batch), bytes=sum(entry.size for entry in batch))
        known = self._known_documents([entry.key for entry in batch if isinstance(entry, Source)])
        watch = stages.Stopwatch()
        ready: dict[str, _Ready] = {}
        with watch("parse"):
            for entry in batch:
                prepared = self._prepare(entry, known)
                if prepared is not None:
                    ready[prepared.source.key] = prepared
        runs.add_timings([self.run.id], watch.seconds)
        if ready:
            self._embed(list(ready.values()))

    def _known_documents(self, keys: list[str]) -> dict[str, Document]:
        documents = Document.objects.filter(
            collection=self.collection, key__in=keys, is_current=True
        )
        return {document.key: document for document in documents}

    def _prepare(self, entry: Source | BrokenSource, known: dict[str, Document]) -> _Ready | None:
        """The parsed source; None where it is broken or unchanged, which is recorded."""
        if isinstance(entry, Source):
            entry = checked_key(entry)
        if isinstance(entry, BrokenSource):
            runs.record_item(
                self.run, entry, state=State.FAILED, code=entry.code, reason=entry.reason
            )
            return None
        document = known.get(entry.key)
        try:
            data = entry.read()
            digest = sha256(data)
            recipe = self.recipe.digest(entry.declared)
            if document is not None and document.is_unchanged(self.run.policy, digest, recipe):
                runs.record_item(self.run, entry, state=State.SKIPPED, document=document)
                return None
            prepared = stages.prepare_for(
                self.collection, data, name=entry.name, declared=entry.declared
            )
            return _Ready(entry, prepared, digest)
        except ParseError as error:
            runs.record_item(
                self.run,
                entry,
                state=State.FAILED,
                code=error.code,
                reason=str(error),
                document=document,
            )
        except OSError as error:
            runs.record_item(
                self.run,
                entry,
                state=State.FAILED,
                code="unreadable",
                reason=f"{entry.name} cannot be read: {error.strerror}. Check its permissions.",
                document=document,
            )
        return None

    def _embed(self, ready: list[_Ready]) -> None:
        token, documents = self._register(ready)
        jobs = [
            Job(
                document=documents[entry.source.key],
                prepared=entry.prepared,
                digest=self.recipe.digest(entry.source.declared),
                source_sha256=entry.source_sha256,
            )
            for entry in ready
            if entry.source.key in documents
        ]
        with claims.kept(token):
            for group in stages.grouped(jobs):
                stages.embed_and_load(group, token=token)
                self.run.refresh_from_db()
                self.on_progress(self.run)

    @transaction.atomic
    def _register(self, ready: list[_Ready]) -> tuple[UUID, dict[str, Document]]:
        """Rows for the documents, claimed, with an open item each on this run."""
        sources = [entry.source for entry in ready]
        registered = register_documents(
            self.collection, sources, run=self.run, state=State.EMBEDDING
        )
        ids = [document.id for document in registered.values()]
        token, documents = claims.claim(ids)
        return token, {document.key: document for document in documents}


def _batches(
    sources: Iterable[Source | BrokenSource],
) -> Iterator[list[Source | BrokenSource]]:
    """A key that comes twice comes in two batches: the later one replaces the earlier, as it would
    in two runs."""
    batch: list[Source | BrokenSource] = []
    size = 0
    keys: set[str] = set()
    for source in sources:
        is_full = len(batch) >= BATCH_FILES or size + source.size > BATCH_BYTES
        key = source.key if isinstance(source, Source) else ""
        if batch and (is_full or key in keys):
            yield batch
            batch, size, keys = [], 0, set()
        batch.append(source)
        size += source.size
        if key:
            keys.add(key)
    if batch:
        yield batch
