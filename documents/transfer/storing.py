"""Documents of an export into the tables, each as a whole or not at all."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any
from uuid import uuid4

from django.conf import settings
from django.db import transaction

from documents.embedders import embedder_for
from documents.ingestion import claims, linking, recipes, runs, versions
from documents.ingestion.embedding import Vectors, embed_texts, known_hashes
from documents.ingestion.loading import Job, StaleVectors, load
from documents.ingestion.locks import share_collections
from documents.ingestion.media import delete_files
from documents.ingestion.preparing import RECIPE_VERSION, PreparedDocument
from documents.ingestion.registering import register_documents
from documents.ingestion.sources import BrokenSource, Source
from documents.ingestion.stopwatch import Stopwatch
from documents.models import Collection, Document, IngestionItem, IngestionRun
from documents.transfer.comparing import chunks_of, is_same
from documents.transfer.format import Header
from documents.transfer.reading import Broken, ImportedDocument
from inference.base import EmptyText, InvalidVector

State = IngestionItem.State

BATCH_DOCUMENTS = 256
BATCH_CHUNKS = 512
#: Somebody else changing the same documents, or the collection its space, once is bad luck.
TRIES = 5


class _Refused(Exception):
    """A document that cannot be put in here; it leaves nothing behind."""


class Importing:
    """Puts documents in, batch by batch, counted on `run`."""

    def __init__(
        self,
        run: IngestionRun,
        header: Header,
        *,
        on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    ) -> None:
        self.run = run
        self.collection: Collection = run.collection
        self.header = header
        self.on_progress = on_progress
        self._watch = Stopwatch()

    def put_in(self, entries: Iterable[ImportedDocument | Broken]) -> None:
        """All of them. Raises RunCancelled, and InferenceError where the model does not work."""
        for batch in _batches(entries):
            documents = [entry for entry in batch if isinstance(entry, ImportedDocument)]
            size = sum(document.size for document in documents)
            runs.expect(self.run.pk, total=len(batch), size=size)
            self._record([_failure(entry) for entry in batch if isinstance(entry, Broken)])
            changed = self._changed(documents)
            with_text = [entry for entry in changed if entry.is_current and not entry.stored_with]
            self._store(with_text)
            for entry in changed:
                if entry not in with_text:
                    self._store([entry])
            runs.add_timings([self.run.pk], self._watch.seconds)
            self._watch = Stopwatch()
            self.run.refresh_from_db()
            self.on_progress(self.run)

    def _record(self, outcomes: Sequence[runs.Outcome]) -> None:
        if outcomes:
            runs.record_items(self.run, outcomes)

    # --- what is there already -------------------------------------------------------------------

    def _changed(self, documents: Sequence[ImportedDocument]) -> list[ImportedDocument]:
        """Those that are not there just so; the others are recorded."""
        rows = Document.objects.filter(
            collection=self.collection, key__in=[entry.key for entry in documents]
        ).select_related("duplicate_of")
        current = {row.key: row for row in rows if row.is_current}
        versions_there = {(row.key, row.version): row for row in rows}
        pairs = [
            (
                entry,
                current.get(entry.key)
                if entry.is_current
                else versions_there.get((entry.key, entry.version)),
            )
            for entry in documents
        ]
        chunks = chunks_of([row.pk for _, row in pairs if row is not None])
        same = [
            (entry, row)
            for entry, row in pairs
            if row is not None and is_same(entry, row, chunks.get(row.pk, []))
        ]
        self._record(
            [runs.Outcome(_source(e), state=State.SKIPPED, document=row) for e, row in same]
        )
        settled = {id(entry) for entry, _ in same}
        return [entry for entry in documents if id(entry) not in settled]

    # --- what is not -----------------------------------------------------------------------------

    def _store(self, documents: Sequence[ImportedDocument]) -> None:
        """These together; if that cannot be because of one, each alone."""
        if not documents:
            return
        try:
            self._try(documents)
        except (InvalidVector, EmptyText, _Refused) as error:
            if len(documents) == 1:
                entry = documents[0]
                self._record([_failure(Broken(entry.key, entry.line, str(error)))])
                return
            for entry in documents:
                self._store([entry])

    def _try(self, documents: Sequence[ImportedDocument]) -> None:
        for _ in range(TRIES):
            self.collection.refresh_from_db()
            vectors = self._vectors(documents)
            try:
                with self._watch("load"):
                    self._put(documents, vectors)
            except StaleVectors:
                continue
            return
        raise _Refused("others change the same documents again and again. Import it again later.")

    def _vectors(self, documents: Sequence[ImportedDocument]) -> Vectors:
        """Those of the file, and the model's for chunks that have none there nor here."""
        rows = versions.compared_with(self.collection, [entry.key for entry in documents])
        known = known_hashes([row.pk for row in rows.values()])
        vectors: Vectors = {}
        texts: dict[str, str] = {}
        for entry in documents:
            if self.header.is_of(self.collection.space):
                vectors |= entry.vectors
            row = rows.get(entry.key)
            for chunk in entry.chunks:
                digest = chunk.content_sha256
                if digest not in vectors and (row is None or (row.pk, digest) not in known):
                    texts[digest] = chunk.embedding_text
        wanted = {digest: text for digest, text in texts.items() if digest not in vectors}
        if wanted:
            with self._watch("embed"):
                vectors |= embed_texts(wanted, embedder=embedder_for(self.collection.space))
        return vectors

    @transaction.atomic
    def _put(self, documents: Sequence[ImportedDocument], vectors: Vectors) -> None:
        share_collections([self.collection.pk])
        if documents[0].is_current:
            rows = self._registered(documents)
        else:
            rows = {documents[0].key: self._superseded(documents[0])}
        for entry in documents:
            if entry.stored_with:
                self._lean(entry, rows[entry.key])
        with_text = [entry for entry in documents if not entry.stored_with]
        if not with_text:
            return
        token, claimed = claims.claim([rows[entry.key].pk for entry in with_text], token=uuid4())
        by_key = {row.key: row for row in claimed}
        jobs = [
            Job(
                document=by_key[entry.key],
                prepared=_prepared(entry),
                digest=self._recipe(entry),
                source_sha256=entry.source_sha256,
                replaces=True,
            )
            for entry in with_text
            if entry.key in by_key
        ]
        load(jobs, vectors, token=token)

    def _registered(self, documents: Sequence[ImportedDocument]) -> dict[str, Document]:
        rows = register_documents(
            self.collection,
            [_source(entry) for entry in documents],
            run=self.run,
            state=State.EMBEDDING,
        )
        runs.hold_open(self.run.pk)
        files = [str(row.file.name) for row in rows.values() if row.file]
        for entry in documents:
            row = rows[entry.key]
            row.access = entry.access
            # The text of the file that was uploaded here is not this one.
            row.file = ""
            row.version = self._version(row, entry)
        Document.objects.bulk_update(rows.values(), ["access", "file", "version"])
        transaction.on_commit(lambda: delete_files(files))
        return rows

    def _version(self, row: Document, entry: ImportedDocument) -> int:
        """Its number over there, unless that is less than here, or taken."""
        taken = row.versions.filter(version__gte=entry.version).exclude(pk=row.pk).exists()
        return row.version if taken else max(row.version, entry.version)

    def _superseded(self, entry: ImportedDocument) -> Document:
        """A row for a version that is not current, below the one that is."""
        rows = Document.objects.filter(collection=self.collection, key=entry.key)
        current = rows.filter(is_current=True).select_for_update(no_key=True).first()
        if current is None or current.version <= entry.version:
            raise _Refused(
                f"version {entry.version} is superseded, and there is no later one here."
                " Put the current one in first."
            )
        if rows.filter(version=entry.version).exists():
            raise _Refused(f"version {entry.version} has another text here. Delete it first.")
        row = Document.objects.create(
            workspace_id=self.collection.workspace_id,
            collection=self.collection,
            key=entry.key,
            version=entry.version,
            is_current=False,
            declared=entry.declared,
            source=entry.source,
            url=entry.url,
            size=entry.size,
            access=entry.access,
        )
        IngestionItem.objects.create(
            workspace_id=self.run.workspace_id,
            run=self.run,
            document=row,
            name=_name(entry),
            size=entry.size,
            state=State.EMBEDDING,
        )
        runs.hold_open(self.run.pk)
        return row

    def _lean(self, entry: ImportedDocument, row: Document) -> None:
        if not linking.link(row, source_sha256=entry.source_sha256, recipe=self._recipe(entry)):
            raise _Refused(
                f"its text is stored with “{entry.stored_with}”, which is not here just so."
                " Put that in first."
            )

    def _recipe(self, entry: ImportedDocument) -> str:
        """So that its file, ingested here, is known as unchanged; empty where it would be cut in
        another way."""
        here = recipes.recipe_of(self.collection)
        cut_alike = (
            entry.is_up_to_date
            and self.header.recipe_version == RECIPE_VERSION
            and self.header.chunker == here.chunker
            and self.header.chunker_options == here.chunker_options
            and self.header.language == here.language
            and self.header.fallback_language == settings.FALLBACK_LANGUAGE
            and self.header.model_name == here.model_name
        )
        return here.digest(entry.declared) if cut_alike else ""


def _batches(
    entries: Iterable[ImportedDocument | Broken],
) -> Iterator[list[ImportedDocument | Broken]]:
    """Of bounded size; a key that comes twice comes in two batches."""
    batch: list[ImportedDocument | Broken] = []
    keys: set[str] = set()
    chunks = 0
    for entry in entries:
        key = entry.key if isinstance(entry, ImportedDocument) else ""
        is_full = len(batch) >= BATCH_DOCUMENTS or chunks >= BATCH_CHUNKS
        if batch and (is_full or key in keys):
            yield batch
            batch, keys, chunks = [], set(), 0
        batch.append(entry)
        if isinstance(entry, ImportedDocument):
            keys.add(key)
            chunks += len(entry.chunks)
    if batch:
        yield batch


def _failure(broken: Broken) -> runs.Outcome:
    name = broken.name or f"line {broken.line}"
    return runs.failure(BrokenSource(name, 0, "malformed", ""), "malformed", str(broken))


def _name(entry: ImportedDocument) -> str:
    return entry.source or entry.key


def _source(entry: ImportedDocument) -> Source:
    return Source(
        key=entry.key,
        name=_name(entry),
        size=entry.size,
        read=bytes,  # nothing is parsed
        declared=entry.declared,
    )


def _prepared(entry: ImportedDocument) -> PreparedDocument:
    return PreparedDocument(
        title=entry.title,
        media_type=entry.media_type,
        rendering=entry.rendering,
        language=entry.language,
        content_sha256=entry.content_sha256,
        metadata=entry.metadata,
        chunks=tuple(entry.chunks),
    )
