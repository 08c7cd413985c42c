"""Lines into documents; whatever is wrong with one is said with its number."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from common.errors import InvalidInput
from common.wording import counted
from documents.ingestion.items import check_vector
from documents.ingestion.preparing import MAX_CHUNK_CHARACTERS, PreparedChunk
from documents.ingestion.sources import MAX_KEY_BYTES
from documents.languages import CONFIGURATIONS, FALLBACK, configuration, configuration_oids
from documents.models import EmbeddingSpace
from documents.transfer.fields import INT8, BrokenLine, Fields
from documents.transfer.format import chunk_digest, decode_vector
from documents.transfer.lines import lines_of, parse_line, read_header

KINDS = ("document", "chunk", "end")
RENDERINGS = ("plain", "markdown")
#: A language that PostgreSQL has no configuration for.
UNDETERMINED = "und"
_CODES = {name: code for code, name in reversed(CONFIGURATIONS.items())}


@dataclass(slots=True)
class ImportedDocument:
    """A document as its lines say; `line` is the number of the first. `vectors` are by the chunks'
    content, None for those to be made."""

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
class Broken:
    """Something that cannot be put in, and why; `name` is the document's key where it is known."""

    name: str
    line: int
    reason: str

    def __str__(self) -> str:
        return f"Line {self.line}: {self.reason}"


class ExportReader:
    """Reads an export from its header on. Raises InvalidInput for what is none."""

    def __init__(self, file: BinaryIO) -> None:
        self._lines = lines_of(file)
        self.header = read_header(next(self._lines, None))
        self._documents = 0
        self._chunks = 0
        self._unreadable = 0
        #: of the document that is being read
        self._current: ImportedDocument | None = None
        self._fault: Broken | None = None

    def entries(self, space: EmbeddingSpace) -> Iterator[ImportedDocument | Broken]:
        """Documents whole, and whatever is broken, in the order of the file.

        Vectors are read, and checked, where they are of `space`'s model.
        """
        takes_vectors = self.header.has_vectors and self.header.is_of(space)
        line, ended = 1, False
        for line, raw in self._lines:
            if ended:
                yield Broken("", line, "there is more behind the end. Was the file put together?")
                return
            try:
                fields = self._parsed(raw)
                kind = fields.values["type"]
                if kind == "chunk":
                    self._add_chunk(fields, line, space if takes_vectors else None)
                    continue
                yield from self._finished()
                if kind == "document":
                    self._documents += 1
                    self._current = _document(fields, line)
                else:
                    ended = True
                    yield from self._counted(fields, line)
            except BrokenLine as error:
                yield from self._note(Broken("", line, f"{error}."))
        yield from self._finished()
        if not ended:
            yield Broken(
                "",
                line,
                f"the file ends here and has no last line: it was cut off after"
                f" {self._documents:,} documents. Export or copy it again.",
            )

    def _parsed(self, raw: bytes | None) -> Fields:
        try:
            fields = parse_line(raw)
            if fields.values.get("type") not in KINDS:
                raise BrokenLine(f"its “type” must be one of {', '.join(KINDS)}")
        except BrokenLine:
            self._unreadable += 1
            raise
        return fields

    def _add_chunk(self, fields: Fields, line: int, space: EmbeddingSpace | None) -> None:
        self._chunks += 1
        document = self._current
        if document is None or self._fault is not None:
            return  # of a document that is said to be broken already
        if len(document.chunks) >= document.chunk_count:
            raise BrokenLine(
                f"it is one chunk more than the {document.chunk_count} of its document"
            )
        chunk = _chunk(fields, document)
        if space is not None and fields.values.get("vector") is not None:
            document.vectors[chunk.content_sha256] = _vector(fields.values["vector"], space)
        document.chunks.append(chunk)

    def _note(self, broken: Broken) -> Iterator[Broken]:
        """A fault within a document is the document's; one elsewhere stands for itself, and chunks
        that follow it are of a document that nobody knows."""
        document = self._current
        if document is None or self._fault is not None:
            if document is None:
                yield broken
            return
        self._fault = Broken(document.key, broken.line, broken.reason)

    def _finished(self) -> Iterator[ImportedDocument | Broken]:
        document, fault = self._current, self._fault
        self._current = self._fault = None
        if document is None:
            return
        if fault is not None:
            yield fault
        elif len(document.chunks) != document.chunk_count:
            yield Broken(
                document.key,
                document.line,
                f"it has {counted(document.chunk_count, 'chunk')}; {len(document.chunks)} came.",
            )
        else:
            yield document

    def _counted(self, fields: Fields, line: int) -> Iterator[Broken]:
        said = (fields.number("documents", most=INT8), fields.number("chunks", most=INT8))
        there = self._documents + self._chunks + self._unreadable
        if sum(said) != there or (self._unreadable == 0 and said[0] != self._documents):
            yield Broken(
                "",
                line,
                f"{counted(said[0], 'document')} and {counted(said[1], 'chunk')} were written;"
                f" {self._documents:,} and {self._chunks:,} are there. Export or copy it again.",
            )


def _document(fields: Fields, line: int) -> ImportedDocument:
    key = fields.text("key", 1024, shortest=1)
    if len(key.encode()) > MAX_KEY_BYTES:
        raise BrokenLine(f"“key” may have {MAX_KEY_BYTES:,} bytes")
    rendering = fields.text("rendering", 10)
    if rendering not in RENDERINGS:
        raise BrokenLine(f"“rendering” must be {' or '.join(RENDERINGS)}")
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
        size=fields.number("size", most=INT8),
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


def _chunk(fields: Fields, document: ImportedDocument) -> PreparedChunk:
    text, context = fields.text("text", MAX_CHUNK_CHARACTERS), fields.text("context", 100_000)
    ordinal = fields.number("ordinal")
    if ordinal != len(document.chunks):
        raise BrokenLine(f"“ordinal” is {ordinal}; {len(document.chunks)} comes next")
    start, end = fields.number("start", most=INT8), fields.number("end", most=INT8)
    if end - start != len(text):
        raise BrokenLine(f"“start” and “end” are not the {len(text)} characters of “text” apart")
    digest = fields.digest("content_sha256")
    contents: Sequence[str] = (text, document.source_sha256)
    if digest not in {chunk_digest(context, content) for content in contents}:
        raise BrokenLine("“content_sha256” is not that of “context” and “text”")
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
        language=_language(fields.text("language", 63), document.language),
        parent=fields.optional_number("parent"),
    )


def _language(name: str, code: str) -> str:
    """The code of a chunk's text search configuration; empty where it is the document's."""
    if name not in configuration_oids() and name not in _CODES:
        raise BrokenLine(f"“language” names no text search configuration: “{name}”")
    if name == configuration(code):
        return ""
    return UNDETERMINED if name == FALLBACK else _CODES.get(name, UNDETERMINED)


def _vector(value: object, space: EmbeddingSpace) -> NDArray[np.float32]:
    try:
        return check_vector(decode_vector(value), space)
    except InvalidInput as error:
        raise BrokenLine(str(error).removesuffix(".")) from error
    except ValueError as error:
        raise BrokenLine(f"“vector” cannot be read: {error}") from error
