"""Read an export and store its documents, each completely or not at all. Begin with `Importer`;
what is wrong with a line is reported with its number."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, BinaryIO
from uuid import uuid4

from django.conf import settings
from django.db import transaction

from common.errors import InvalidInput
from common.json_lines import read_lines
from common.text import pluralized
from documents.embedders import embedder_for
from documents.ingestion import duplicates, jobs, listeners, versions
from documents.ingestion.concurrency import Stopwatch, share_collection_locks
from documents.ingestion.embedding import Vectors, embed_texts, known_hashes
from documents.ingestion.items import check_vector
from documents.ingestion.loader import LoadJob, StaleVectors, load_documents
from documents.ingestion.preparation import (
    MAX_CHUNK_CHARACTERS,
    RECIPE_VERSION,
    PreparedChunk,
    PreparedDocument,
    chunk_digest,
    recipe_for,
)
from documents.ingestion.registration import open_items, register_documents
from documents.ingestion.sources import MAX_KEY_BYTES, BrokenSource, Source
from documents.ingestion.space_choice import fit_space
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


@dataclass(slots=True, eq=False)
class ImportedDocument:
    """A document of an export, unsaved; `line` is the number of its first line. `vectors` are by
    content hash; chunks without one are embedded. The text of an alias is `stored_with` another
    document, whose key that is."""

    line: int
    document: Document
    is_up_to_date: bool
    stored_with: str | None
    #: Its line, in which other apps may have fields.
    values: Mapping[str, Any]
    chunks: list[PreparedChunk] = field(default_factory=list)
    vectors: Vectors = field(default_factory=dict)


#: A document, or what cannot be imported, and why.
ImportEntry = ImportedDocument | BrokenSource


def _problem(key: str, line: int, reason: str) -> BrokenSource:
    return BrokenSource(key or f"line {line}", 0, "malformed", f"Line {line}: {reason}")


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
        self._fault: BrokenSource | None = None

    def entries(self, space: EmbeddingSpace) -> Iterator[ImportEntry]:
        """Complete documents, and problems, in the order of the file.

        Vectors are read and checked if they are of `space`'s model.
        """
        takes_vectors = self.header.has_vectors and self.header.is_of(space)
        line, ended = 1, False
        for line, raw in self._lines:
            if ended:
                yield _problem("", line, "there is more behind the end. Was the file put together?")
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
                    said = tuple(fields.number(n, most=MAX_INT8) for n in ("documents", "chunks"))
                    there = self._documents + self._chunks + self._unreadable
                    if sum(said) != there or (self._unreadable == 0 and said[0] != self._documents):
                        reason = (
                            f"{pluralized(said[0], 'document')} and {pluralized(said[1], 'chunk')}"
                            f" were written; {self._documents:,} and {self._chunks:,} are there."
                            " Export or copy it again."
                        )
                        yield _problem("", line, reason)
            except InvalidLine as error:
                # It fails the document around it; elsewhere it stands alone, and chunks after it
                # belong to an unknown document.
                if self._current is None:
                    yield _problem("", line, f"{error}.")
                elif self._fault is None:
                    self._fault = _problem(self._current.document.key, line, f"{error}.")
        yield from self._finished()
        if not ended:
            yield _problem(
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
        count = document.document.chunk_count
        if len(document.chunks) >= count:
            raise InvalidLine(f"it is one chunk more than the {count} of its document")
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

    def _finished(self) -> Iterator[ImportEntry]:
        entry, fault = self._current, self._fault
        self._current = self._fault = None
        if entry is None:
            return
        count = entry.document.chunk_count
        if fault is not None:
            yield fault
        elif len(entry.chunks) != count:
            reason = f"it has {pluralized(count, 'chunk')}; {len(entry.chunks)} came."
            yield _problem(entry.document.key, entry.line, reason)
        else:
            yield entry


def _parse_document(fields: LineFields, line: int) -> ImportedDocument:
    key = fields.text("key", 1024, shortest=1)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise InvalidLine(f"“key” may have {MAX_KEY_BYTES:,} bytes")
    rendering = fields.text("rendering", 10)
    if rendering not in RENDERINGS:
        raise InvalidLine(f"“rendering” must be {' or '.join(RENDERINGS)}")
    document = Document(
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
        access=None if fields.values.get("access") is None else fields.texts("access", 80),
        size=fields.number("size", most=MAX_INT8),
        source_sha256=fields.digest("source_sha256"),
        content_sha256=fields.digest("content_sha256"),
        chunk_count=fields.number("chunks"),
    )
    is_alias = fields.values.get("stored_with") is not None
    return ImportedDocument(
        line,
        document,
        is_up_to_date=fields.flag("is_up_to_date"),
        stored_with=fields.text("stored_with", 1024, shortest=1) if is_alias else None,
        values=fields.values,
    )


def _parse_chunk(fields: LineFields, entry: ImportedDocument) -> PreparedChunk:
    text, context = fields.text("text", MAX_CHUNK_CHARACTERS), fields.text("context", 100_000)
    ordinal = fields.number("ordinal")
    if ordinal != len(entry.chunks):
        raise InvalidLine(f"“ordinal” is {ordinal}; {len(entry.chunks)} comes next")
    start, end = fields.number("start", most=MAX_INT8), fields.number("end", most=MAX_INT8)
    if end - start != len(text):
        raise InvalidLine(f"“start” and “end” are not the {len(text)} characters of “text” apart")
    digest = fields.digest("content_sha256")
    contents = (text, entry.document.source_sha256)
    if digest not in {chunk_digest(context, content) for content in contents}:
        raise InvalidLine("“content_sha256” is not that of “context” and “text”")
    name = fields.text("language", 63)
    if name not in configuration_oids() and name not in _CODE_BY_CONFIGURATION:
        raise InvalidLine(f"“language” names no text search configuration: “{name}”")
    language = ""
    if name != configuration(entry.document.language):
        known = {} if name == FALLBACK else _CODE_BY_CONFIGURATION
        language = known.get(name, UNDETERMINED_LANGUAGE)
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
        language=language,
        parent=fields.optional_number("parent"),
    )


#: Fields of a chunk that two texts of a document may differ in.
_COMPARED_FIELDS = (
    *("content_sha256", "start", "end", "page", "parent", "token_count", "metadata", "language"),
)
ChunkState = tuple[Any, ...]


def stored_chunk_states(
    document_ids: Sequence[int], *, with_vectors: bool
) -> dict[int, list[ChunkState]]:
    """The compared fields of each stored chunk, only those `with_vectors` if so, in order, by
    document."""
    found: dict[int, list[ChunkState]] = defaultdict(list)
    rows = Chunk.objects.filter(document__in=document_ids)
    if with_vectors:
        rows = rows.filter(embedding__isnull=False)
    ordered = rows.order_by("document_id", "ordinal").values_list("document_id", *_COMPARED_FIELDS)
    for document_id, *state in ordered.iterator(chunk_size=2000):
        found[document_id].append(tuple(state))
    return found


def is_unchanged(
    entry: ImportedDocument,
    row: Document,
    chunks: Sequence[ChunkState],
    added: Mapping[str, Any],
) -> bool:
    """Whether importing the entry would change nothing but times. `added` is what other apps would
    add to the line of the stored document."""
    names = (
        *("title", "media_type", "rendering", "language", "metadata", "declared", "access"),
        *("source_sha256", "content_sha256"),
    )
    document = entry.document
    stored_with = row.duplicate_of.key if row.is_link and row.duplicate_of else None
    if (
        row.status != Document.Status.READY
        or any(getattr(row, name) != getattr(document, name) for name in names)
        or stored_with != entry.stored_with
        or any(entry.values.get(name, value) != value for name, value in added.items())
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
            {**document.metadata, **chunk.metadata},
            configuration(chunk.language or document.language),
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

    def import_entries(self, entries: Iterable[ImportEntry]) -> None:
        """Import all entries. Raises RunCancelled, and InferenceError if the model does not
        work."""
        for batch in _import_batches(entries):
            documents = [entry for entry in batch if isinstance(entry, ImportedDocument)]
            size = sum(entry.document.size for entry in documents)
            jobs.add_expected_files(self.run.pk, total=len(batch), size=size)
            broken = [entry for entry in batch if isinstance(entry, BrokenSource)]
            self._record_failures(broken)
            changed = self._changed(documents)
            with_text = [e for e in changed if e.document.is_current and not e.stored_with]
            if not any(map(_has_own_vector, with_text)):
                languages = {entry.document.key: entry.document.language for entry in with_text}
                fit_space(self.collection, languages)
            self._store(with_text)
            for entry in changed:
                if entry not in with_text:
                    self._store([entry])
            jobs.add_timings([self.run.pk], self._watch.seconds)
            self._watch = Stopwatch()
            self.run.refresh_from_db()
            self.on_progress(self.run)

    def _record_failures(self, broken: Iterable[BrokenSource]) -> None:
        jobs.record_items(
            self.run,
            [jobs.settled_item(each, code=each.code, reason=each.reason) for each in broken],
        )

    def _changed(self, entries: Sequence[ImportedDocument]) -> list[ImportedDocument]:
        """Documents that differ from the stored ones; the others are recorded as unchanged."""
        keys = [entry.document.key for entry in entries]
        rows = Document.objects.filter(collection=self.collection, key__in=keys)
        current: dict[str, Document] = {}
        versions_there: dict[tuple[str, int], Document] = {}
        for row in rows.select_related("duplicate_of"):
            versions_there[row.key, row.version] = row
            if row.is_current:
                current[row.key] = row
        pairs = [
            (
                entry,
                current.get(entry.document.key)
                if entry.document.is_current
                else versions_there.get((entry.document.key, entry.document.version)),
            )
            for entry in entries
        ]
        known_ids = [row.pk for _, row in pairs if row is not None]
        chunks = stored_chunk_states(known_ids, with_vectors=self.collection.has_vectors)
        added = listeners.exported(known_ids)
        changed: list[ImportedDocument] = []
        skipped: list[IngestionItem] = []
        for entry, known in pairs:
            if known is not None and is_unchanged(
                entry, known, chunks.get(known.pk, []), added[known.pk]
            ):
                source = _entry_source(entry.document)
                skipped.append(jobs.settled_item(source, State.SKIPPED, document=known))
            else:
                changed.append(entry)
        jobs.record_items(self.run, skipped)
        return changed

    def _store(self, entries: Sequence[ImportedDocument]) -> None:
        """Store these together; if one of them prevents that, each alone."""
        if not entries:
            return
        try:
            for _ in range(TRIES):
                self.collection.refresh_from_db()
                vectors = self._vectors(entries)
                with suppress(StaleVectors), self._watch("load"):
                    self._put(entries, vectors)
                    return
            raise _ImportRefused(
                "others change the same documents again and again. Import it again later."
            )
        except (InvalidVector, EmptyText, _ImportRefused) as error:
            if len(entries) == 1:
                key, line = entries[0].document.key, entries[0].line
                self._record_failures([_problem(key, line, str(error))])
                return
        for entry in entries:
            self._store([entry])

    def _vectors(self, entries: Sequence[ImportedDocument]) -> Vectors:
        """Vectors of the file, and the model's for chunks without a vector in the file or the
        database."""
        keys = [entry.document.key for entry in entries]
        rows = versions.documents_to_compare(self.collection, keys)
        known = known_hashes([row.pk for row in rows.values()])
        vectors: Vectors = {}
        texts: dict[str, str] = {}
        for entry in entries:
            if self.header.is_of(self.collection.space):
                vectors |= entry.vectors
            row = rows.get(entry.document.key)
            for chunk in entry.chunks:
                digest = chunk.content_sha256
                if digest not in vectors and (row is None or (row.pk, digest) not in known):
                    texts[digest] = chunk.embedding_text
        wanted = {digest: text for digest, text in texts.items() if digest not in vectors}
        if wanted and self.collection.has_vectors:
            with self._watch("embed"):
                vectors |= embed_texts(wanted, embedder=embedder_for(self.collection.space))
        return vectors

    @transaction.atomic
    def _put(self, entries: Sequence[ImportedDocument], vectors: Vectors) -> None:
        share_collection_locks([self.collection.pk])
        first = entries[0].document
        if first.is_current:
            rows = self._registered([entry.document for entry in entries])
        else:
            rows = {first.key: self._superseded(first)}
        jobs.lock_open_run(self.run.pk)
        for entry in entries:
            if entry.stored_with and not duplicates.make_alias(
                rows[entry.document.key],
                source_sha256=entry.document.source_sha256,
                recipe=self._recipe(entry),
            ):
                raise _ImportRefused(
                    f"its text is stored with “{entry.stored_with}”, which is not here just so."
                    " Put that in first."
                )
        with_text = {entry.document.key: entry for entry in entries if not entry.stored_with}
        if not with_text:
            return
        token, claimed = jobs.claim([rows[key].pk for key in with_text], token=uuid4())
        load_jobs = [
            LoadJob(
                document=row,
                prepared=PreparedDocument(
                    title=document.title,
                    media_type=document.media_type,
                    rendering=document.rendering,
                    language=document.language,
                    content_sha256=document.content_sha256,
                    metadata=document.metadata,
                    chunks=tuple(entry.chunks),
                ),
                digest=self._recipe(entry),
                source_sha256=document.source_sha256,
                replaces=True,
            )
            for row in claimed
            for entry in [with_text[row.key]]
            for document in [entry.document]
        ]
        load_documents(load_jobs, vectors, token=token)
        for row in claimed:
            try:
                listeners.imported(row.pk, with_text[row.key].values)
            except InvalidInput as error:
                raise _ImportRefused(str(error)) from error

    def _registered(self, documents: Sequence[Document]) -> dict[str, Document]:
        sources = [_entry_source(document) for document in documents]
        rows = register_documents(self.collection, sources, run=self.run, state=State.EMBEDDING)
        files = [str(row.file.name) for row in rows.values() if row.file]
        for document in documents:
            row = rows[document.key]
            row.access = document.access
            # The text of the file that was uploaded here is not this one.
            row.file = ""
            # The exported version number, unless it is lower than the current one here, or taken.
            taken = row.versions.filter(version__gte=document.version).exclude(pk=row.pk).exists()
            row.version = row.version if taken else max(row.version, document.version)
        Document.objects.bulk_update(rows.values(), ["access", "file", "version"])
        transaction.on_commit(lambda: delete_files(files))
        return rows

    def _superseded(self, document: Document) -> Document:
        """A row for a superseded version, below the current one."""
        version = document.version
        rows = Document.objects.filter(collection=self.collection, key=document.key)
        current = rows.filter(is_current=True).select_for_update(no_key=True).first()
        if current is None or current.version <= version:
            raise _ImportRefused(
                f"version {version} is superseded, and there is no later one here."
                " Put the current one in first."
            )
        if rows.filter(version=version).exists():
            raise _ImportRefused(f"version {version} has another text here. Delete it first.")
        names = ("key", "version", "is_current", "declared", "source", "url", "size", "access")
        row = Document.objects.create(
            workspace_id=self.collection.workspace_id,
            collection=self.collection,
            **{name: getattr(document, name) for name in names},
        )
        open_items(self.run, [row], state=State.EMBEDDING)
        return row

    def _recipe(self, entry: ImportedDocument) -> str:
        """The recipe with which an ingestion of the same file here counts as unchanged; empty if it
        would be chunked differently."""
        here = recipe_for(self.collection)
        cut_alike = (
            entry.is_up_to_date
            and self.header.recipe_version == RECIPE_VERSION
            and self.header.chunker == here.chunker
            and self.header.chunker_options == here.chunker_options
            and self.header.language == here.language
            and self.header.fallback_language == settings.FALLBACK_LANGUAGE
            and self.header.model_name == here.model_name
        )
        return here.digest(entry.document.declared) if cut_alike else ""


def _has_own_vector(entry: ImportedDocument) -> bool:
    """Whether a program stored a vector of its own with it, which chose the model."""
    return any(
        chunk.content_sha256 != chunk_digest(chunk.context, chunk.text) for chunk in entry.chunks
    )


def _import_batches(entries: Iterable[ImportEntry]) -> Iterator[list[ImportEntry]]:
    """Batches of bounded size; a repeated key goes into a separate batch."""
    batch: list[ImportEntry] = []
    keys: set[str] = set()
    chunks = 0
    for entry in entries:
        key = entry.document.key if isinstance(entry, ImportedDocument) else ""
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


def _entry_source(document: Document) -> Source:
    return Source(
        key=document.key,
        name=document.source or document.key,
        size=document.size,
        read=bytes,  # nothing is parsed
        declared=document.declared,
    )
