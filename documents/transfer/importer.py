"""Read an export and store its documents, each completely or not at all. Begin with `Importer`;
what is wrong with a line is reported with its number."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from uuid import uuid4

import numpy as np
from django.conf import settings
from django.db import transaction
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.json_lines import read_lines
from common.text import pluralized
from documents.embedders import embedder_for
from documents.ingestion import duplicates, preparation, versions
from documents.ingestion import jobs as ingestion_jobs
from documents.ingestion.concurrency import Stopwatch, share_collection_locks
from documents.ingestion.items import check_vector
from documents.ingestion.loader import (
    LoadJob,
    StaleVectors,
    Vectors,
    embed_texts,
    known_hashes,
    load_documents,
)
from documents.ingestion.preparation import (
    MAX_CHUNK_CHARACTERS,
    RECIPE_VERSION,
    PreparedChunk,
    PreparedDocument,
)
from documents.ingestion.registration import register_documents
from documents.ingestion.sources import MAX_KEY_BYTES, BrokenSource, Source
from documents.ingestion.stored_files import delete_files
from documents.languages import CONFIGURATIONS, FALLBACK, configuration, configuration_oids
from documents.models import (
    Chunk,
    Collection,
    Document,
    EmbeddingSpace,
    IngestionItem,
    IngestionRun,
)
from documents.transfer.format import (
    MAX_INT8,
    ExportHeader,
    InvalidLine,
    LineFields,
    content_digest,
    decode_vector,
    parse_line,
    read_header,
)
from inference.interfaces import EmptyText, InvalidVector

LINE_KINDS = ("document", "chunk", "end")
RENDERINGS = ("plain", "markdown")
#: A language that PostgreSQL has no configuration for.
UNDETERMINED_LANGUAGE = "und"
_CODE_BY_CONFIGURATION = {name: code for code, name in reversed(CONFIGURATIONS.items())}


@dataclass(slots=True)
class ImportedDocument:
    """A document of an export; `line` is the number of its first line. `vectors` are by content
    hash; chunks without one are embedded."""

    line: int
    key: str
    version: int
    is_current: bool
    title: str
    source: str
    url: str
    media_type: str
    rendering: str
    language: str
    metadata: dict[str, Any]
    declared: dict[str, Any]
    access: list[str] | None
    size: int
    source_sha256: str
    content_sha256: str
    is_up_to_date: bool
    chunk_count: int
    stored_with: str | None
    chunks: list[PreparedChunk] = field(default_factory=list)
    vectors: dict[str, NDArray[np.float32]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ImportProblem:
    """Something that cannot be imported, and why; `name` is the document's key if known."""

    name: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.reason}"


class ExportReader:
    """Reads an export. Raises InvalidInput if the file is none."""

    def __init__(self, file: BinaryIO) -> None:
        self._lines = read_lines(file)
        self.header = read_header(next(self._lines, None))
        self._documents = 0
        self._chunks = 0
        self._unreadable = 0
        #: of the document that is being read
        self._current: ImportedDocument | None = None
        self._fault: ImportProblem | None = None

    def entries(self, space: EmbeddingSpace) -> Iterator[ImportedDocument | ImportProblem]:
        """Complete documents, and problems, in the order of the file.

        Vectors are read and checked if they are of `space`'s model.
        """
        takes_vectors = self.header.has_vectors and self.header.is_of(space)
        line, ended = 1, False
        for line, raw in self._lines:
            if ended:
                yield ImportProblem(
                    "", line, "there is more behind the end. Was the file put together?"
                )
                return
            try:
                try:
                    fields = parse_line(raw)
                    if fields.values.get("type") not in LINE_KINDS:
                        raise InvalidLine(f"its “type” must be one of {', '.join(LINE_KINDS)}")
                except InvalidLine:
                    self._unreadable += 1
                    raise
                kind = fields.values["type"]
                if kind == "chunk":
                    self._add_chunk(fields, line, space if takes_vectors else None)
                    continue
                yield from self._finished()
                if kind == "document":
                    self._documents += 1
                    self._current = _parse_document(fields, line)
                else:
                    ended = True
                    yield from self._counted(fields, line)
            except InvalidLine as error:
                # It fails the document around it; elsewhere it stands alone, and chunks after it
                # belong to an unknown document.
                if self._current is None:
                    yield ImportProblem("", line, f"{error}.")
                elif self._fault is None:
                    self._fault = ImportProblem(self._current.key, line, f"{error}.")
        yield from self._finished()
        if not ended:
            yield ImportProblem(
                "",
                line,
                f"the file ends here and has no last line: it was cut off after"
                f" {self._documents:,} documents. Export or copy it again.",
            )

    def _add_chunk(self, fields: LineFields, line: int, space: EmbeddingSpace | None) -> None:
        self._chunks += 1
        document = self._current
        if document is None or self._fault is not None:
            return  # of a document already reported as broken
        if len(document.chunks) >= document.chunk_count:
            raise InvalidLine(
                f"it is one chunk more than the {document.chunk_count} of its document"
            )
        chunk = _parse_chunk(fields, document)
        if space is not None and fields.values.get("vector") is not None:
            try:
                vector = check_vector(decode_vector(fields.values["vector"]), space)
            except InvalidInput as error:
                raise InvalidLine(str(error).removesuffix(".")) from error
            except ValueError as error:
                raise InvalidLine(f"“vector” cannot be read: {error}") from error
            document.vectors[chunk.content_sha256] = vector
        document.chunks.append(chunk)

    def _finished(self) -> Iterator[ImportedDocument | ImportProblem]:
        document, fault = self._current, self._fault
        self._current = self._fault = None
        if document is None:
            return
        if fault is not None:
            yield fault
        elif len(document.chunks) != document.chunk_count:
            yield ImportProblem(
                document.key,
                document.line,
                f"it has {pluralized(document.chunk_count, 'chunk')}; {len(document.chunks)} came.",
            )
        else:
            yield document

    def _counted(self, fields: LineFields, line: int) -> Iterator[ImportProblem]:
        said = (fields.number("documents", most=MAX_INT8), fields.number("chunks", most=MAX_INT8))
        there = self._documents + self._chunks + self._unreadable
        if sum(said) != there or (self._unreadable == 0 and said[0] != self._documents):
            yield ImportProblem(
                "",
                line,
                f"{pluralized(said[0], 'document')} and {pluralized(said[1], 'chunk')} were"
                f" written; {self._documents:,} and {self._chunks:,} are there."
                " Export or copy it again.",
            )


def _parse_document(fields: LineFields, line: int) -> ImportedDocument:
    key = fields.text("key", 1024, shortest=1)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise InvalidLine(f"“key” may have {MAX_KEY_BYTES:,} bytes")
    rendering = fields.text("rendering", 10)
    if rendering not in RENDERINGS:
        raise InvalidLine(f"“rendering” must be {' or '.join(RENDERINGS)}")
    return ImportedDocument(
        line=line,
        key=key,
        version=fields.number("version", least=1),
        is_current=fields.flag("is_current"),
        title=fields.text("title", 500),
        source=fields.text("source", 1024),
        url=fields.text("url", 2000),
        media_type=fields.text("media_type", 100),
        rendering=rendering,
        language=fields.text("language", 20),
        metadata=fields.mapping("metadata"),
        declared=fields.mapping("declared"),
        access=fields.optional_texts("access", 80),
        size=fields.number("size", most=MAX_INT8),
        source_sha256=fields.digest("source_sha256"),
        content_sha256=fields.digest("content_sha256"),
        is_up_to_date=fields.flag("is_up_to_date"),
        chunk_count=fields.number("chunks"),
        stored_with=(
            None
            if fields.values.get("stored_with") is None
            else fields.text("stored_with", 1024, shortest=1)
        ),
    )


def _parse_chunk(fields: LineFields, document: ImportedDocument) -> PreparedChunk:
    text, context = fields.text("text", MAX_CHUNK_CHARACTERS), fields.text("context", 100_000)
    ordinal = fields.number("ordinal")
    if ordinal != len(document.chunks):
        raise InvalidLine(f"“ordinal” is {ordinal}; {len(document.chunks)} comes next")
    start, end = fields.number("start", most=MAX_INT8), fields.number("end", most=MAX_INT8)
    if end - start != len(text):
        raise InvalidLine(f"“start” and “end” are not the {len(text)} characters of “text” apart")
    digest = fields.digest("content_sha256")
    if digest not in {
        content_digest(context, content) for content in (text, document.source_sha256)
    }:
        raise InvalidLine("“content_sha256” is not that of “context” and “text”")
    return PreparedChunk(
        ordinal=ordinal,
        text=text,
        context=context,
        start=start,
        end=end,
        token_count=fields.number("token_count"),
        heading_path=tuple(fields.texts("heading_path", 100_000)),
        page=fields.optional_number("page"),
        key=fields.text("key", 1024),
        summary=fields.text("summary", 1_000_000),
        metadata=fields.mapping("metadata"),
        content_sha256=digest,
        language=_chunk_language(fields.text("language", 63), document.language),
        parent=fields.optional_number("parent"),
    )


def _chunk_language(name: str, code: str) -> str:
    """ISO code of a chunk's text search configuration; empty if it is the document's."""
    if name not in configuration_oids() and name not in _CODE_BY_CONFIGURATION:
        raise InvalidLine(f"“language” names no text search configuration: “{name}”")
    if name == configuration(code):
        return ""
    if name == FALLBACK:
        return UNDETERMINED_LANGUAGE
    return _CODE_BY_CONFIGURATION.get(name, UNDETERMINED_LANGUAGE)


ChunkState = tuple[Any, ...]
_COMPARED_FIELDS = (
    "content_sha256",
    "start",
    "end",
    "page",
    "parent",
    "token_count",
    "metadata",
    "language",
)


def stored_chunk_states(document_ids: Sequence[int]) -> dict[int, list[ChunkState]]:
    """The compared fields of each stored chunk, in order, by document."""
    found: dict[int, list[ChunkState]] = {}
    rows = Chunk.objects.filter(document__in=document_ids, embedding__isnull=False)
    ordered = rows.order_by("document_id", "ordinal").values_list("document_id", *_COMPARED_FIELDS)
    for document_id, *shape in ordered.iterator(chunk_size=2000):
        found.setdefault(document_id, []).append(tuple(shape))
    return found


def is_unchanged(entry: ImportedDocument, row: Document, chunks: Sequence[ChunkState]) -> bool:
    """Whether importing the entry would change nothing but times."""
    names = (
        *("title", "media_type", "rendering", "language", "metadata", "declared", "access"),
        *("source_sha256", "content_sha256"),
    )
    stored_with = row.duplicate_of.key if row.is_link and row.duplicate_of else None
    if (
        row.status != Document.Status.READY
        or any(getattr(row, name) != getattr(entry, name) for name in names)
        or stored_with != entry.stored_with
    ):
        return False
    imported = [
        (
            chunk.content_sha256,
            chunk.start,
            chunk.end,
            chunk.page,
            chunk.parent,
            chunk.token_count,
            {**entry.metadata, **chunk.metadata},
            configuration(chunk.language or entry.language),
        )
        for chunk in entry.chunks
    ]
    return list(chunks) == imported


State = IngestionItem.State

BATCH_DOCUMENTS = 256
BATCH_CHUNKS = 512
#: Attempts when others change the same documents, or the collection's space, concurrently.
TRIES = 5


class _ImportRefused(Exception):
    """A document that cannot be imported; it leaves nothing behind."""


class Importer:
    """Imports documents, batch by batch, counted on `run`."""

    def __init__(
        self,
        run: IngestionRun,
        header: ExportHeader,
        *,
        on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    ) -> None:
        self.run = run
        self.collection: Collection = run.collection
        self.header = header
        self.on_progress = on_progress
        self._watch = Stopwatch()

    def import_entries(self, entries: Iterable[ImportedDocument | ImportProblem]) -> None:
        """Import all entries. Raises RunCancelled, and InferenceError if the model does not
        work."""
        for batch in _import_batches(entries):
            documents = [entry for entry in batch if isinstance(entry, ImportedDocument)]
            size = sum(document.size for document in documents)
            ingestion_jobs.add_expected_files(self.run.pk, total=len(batch), size=size)
            self._record(
                [_failed_item(entry) for entry in batch if isinstance(entry, ImportProblem)]
            )
            changed = self._changed(documents)
            with_text = [entry for entry in changed if entry.is_current and not entry.stored_with]
            self._store(with_text)
            for entry in changed:
                if entry not in with_text:
                    self._store([entry])
            ingestion_jobs.add_timings([self.run.pk], self._watch.seconds)
            self._watch = Stopwatch()
            self.run.refresh_from_db()
            self.on_progress(self.run)

    def _record(self, outcomes: Sequence[ingestion_jobs.ItemOutcome]) -> None:
        if outcomes:
            ingestion_jobs.record_items(self.run, outcomes)

    # --- existing documents ----------------------------------------------------------------------

    def _changed(self, documents: Sequence[ImportedDocument]) -> list[ImportedDocument]:
        """Documents that differ from the stored ones; the others are recorded as unchanged."""
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
        chunks = stored_chunk_states([row.pk for _, row in pairs if row is not None])
        same = [
            (entry, row)
            for entry, row in pairs
            if row is not None and is_unchanged(entry, row, chunks.get(row.pk, []))
        ]
        self._record(
            [
                ingestion_jobs.ItemOutcome(_entry_source(e), state=State.SKIPPED, document=row)
                for e, row in same
            ]
        )
        settled = {id(entry) for entry, _ in same}
        return [entry for entry in documents if id(entry) not in settled]

    # --- new and changed documents ---------------------------------------------------------------

    def _store(self, documents: Sequence[ImportedDocument]) -> None:
        """Store these together; if one of them prevents that, each alone."""
        if not documents:
            return
        try:
            self._store_with_retries(documents)
        except (InvalidVector, EmptyText, _ImportRefused) as error:
            if len(documents) == 1:
                entry = documents[0]
                self._record([_failed_item(ImportProblem(entry.key, entry.line, str(error)))])
                return
            for entry in documents:
                self._store([entry])

    def _store_with_retries(self, documents: Sequence[ImportedDocument]) -> None:
        for _ in range(TRIES):
            self.collection.refresh_from_db()
            vectors = self._vectors(documents)
            try:
                with self._watch("load"):
                    self._put(documents, vectors)
            except StaleVectors:
                continue
            return
        raise _ImportRefused(
            "others change the same documents again and again. Import it again later."
        )

    def _vectors(self, documents: Sequence[ImportedDocument]) -> Vectors:
        """Vectors of the file, and the model's for chunks without a vector in the file or the
        database."""
        rows = versions.documents_to_compare(self.collection, [entry.key for entry in documents])
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
        share_collection_locks([self.collection.pk])
        if documents[0].is_current:
            rows = self._registered(documents)
        else:
            rows = {documents[0].key: self._superseded(documents[0])}
        for entry in documents:
            if entry.stored_with and not duplicates.make_alias(
                rows[entry.key], source_sha256=entry.source_sha256, recipe=self._recipe(entry)
            ):
                raise _ImportRefused(
                    f"its text is stored with “{entry.stored_with}”, which is not here just so."
                    " Put that in first."
                )
        with_text = [entry for entry in documents if not entry.stored_with]
        if not with_text:
            return
        token, claimed = ingestion_jobs.claim(
            [rows[entry.key].pk for entry in with_text], token=uuid4()
        )
        by_key = {row.key: row for row in claimed}
        jobs = [
            LoadJob(
                document=by_key[entry.key],
                prepared=PreparedDocument(
                    title=entry.title,
                    media_type=entry.media_type,
                    rendering=entry.rendering,
                    language=entry.language,
                    content_sha256=entry.content_sha256,
                    metadata=entry.metadata,
                    chunks=tuple(entry.chunks),
                ),
                digest=self._recipe(entry),
                source_sha256=entry.source_sha256,
                replaces=True,
            )
            for entry in with_text
            if entry.key in by_key
        ]
        load_documents(jobs, vectors, token=token)

    def _registered(self, documents: Sequence[ImportedDocument]) -> dict[str, Document]:
        rows = register_documents(
            self.collection,
            [_entry_source(entry) for entry in documents],
            run=self.run,
            state=State.EMBEDDING,
        )
        ingestion_jobs.lock_open_run(self.run.pk)
        files = [str(row.file.name) for row in rows.values() if row.file]
        for entry in documents:
            row = rows[entry.key]
            row.access = entry.access
            # The text of the file that was uploaded here is not this one.
            row.file = ""
            # The exported version number, unless it is lower than the current one here, or taken.
            taken = row.versions.filter(version__gte=entry.version).exclude(pk=row.pk).exists()
            row.version = row.version if taken else max(row.version, entry.version)
        Document.objects.bulk_update(rows.values(), ["access", "file", "version"])
        transaction.on_commit(lambda: delete_files(files))
        return rows

    def _superseded(self, entry: ImportedDocument) -> Document:
        """A row for a superseded version, below the current one."""
        rows = Document.objects.filter(collection=self.collection, key=entry.key)
        current = rows.filter(is_current=True).select_for_update(no_key=True).first()
        if current is None or current.version <= entry.version:
            raise _ImportRefused(
                f"version {entry.version} is superseded, and there is no later one here."
                " Put the current one in first."
            )
        if rows.filter(version=entry.version).exists():
            raise _ImportRefused(f"version {entry.version} has another text here. Delete it first.")
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
            name=entry.source or entry.key,
            size=entry.size,
            state=State.EMBEDDING,
        )
        ingestion_jobs.lock_open_run(self.run.pk)
        return row

    def _recipe(self, entry: ImportedDocument) -> str:
        """The recipe with which an ingestion of the same file here counts as unchanged; empty if it
        would be chunked differently."""
        here = preparation.recipe_for(self.collection)
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


def _import_batches(
    entries: Iterable[ImportedDocument | ImportProblem],
) -> Iterator[list[ImportedDocument | ImportProblem]]:
    """Batches of bounded size; a repeated key goes into a separate batch."""
    batch: list[ImportedDocument | ImportProblem] = []
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


def _failed_item(broken: ImportProblem) -> ingestion_jobs.ItemOutcome:
    name = broken.name or f"line {broken.line}"
    return ingestion_jobs.failed_outcome(
        BrokenSource(name, 0, "malformed", ""), "malformed", str(broken)
    )


def _entry_source(entry: ImportedDocument) -> Source:
    return Source(
        key=entry.key,
        name=entry.source or entry.key,
        size=entry.size,
        read=bytes,  # nothing is parsed
        declared=entry.declared,
    )
