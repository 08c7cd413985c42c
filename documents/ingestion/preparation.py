"""Parse and chunk: from a source's content to chunks that lack only their vectors. Begin with
`prepare_for`; `Recipe` is how a collection does it."""

import hashlib
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from itertools import chain, count, islice
from tempfile import TemporaryDirectory
from typing import Any

from django.conf import settings

from documents.embedders import embedder_for
from documents.fitting_models import cutting_embedder
from documents.ingestion.concurrency import Stopwatch
from documents.ingestion.scanned_pages import PageTexts
from documents.ingestion.sources import (
    Content,
    check_size,
    content_from_bytes,
    parser_limits,
)
from documents.languages import SAMPLE_CHARACTERS, detect_language
from documents.models import Collection
from documents.models.chunk import embedding_text
from documents.question_language import text_language
from reading import libreoffice
from reading.chunkers import get_chunker
from reading.chunkers.base import ChunkerError, Embed, TokenCounter
from reading.location import PAGE_LABEL
from reading.parsers import ParsedDocument, ParseError, content_sha256, parse
from reading.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX, chunk_offsets
from reading.parsers.registry import detect_media_type, is_compound_file
from reading.sandbox import parse_in_sandbox, run_in_sandbox
from reading.sandbox.limits import ParserLimits
from reading.sandbox.protocol import ParseRequest

#: Changes when the same bytes would be cut differently, so that documents are cut anew.
RECIPE_VERSION = 6

#: Failures of an old workbook that LibreOffice may read all the same.
_PERHAPS_READ = frozenset({"malformed", "no_text"})
#: By which a compound file is known.
HEAD_BYTES = 8

#: The context (title and headings) may take this share of what a model reads of a chunk.
CONTEXT_SHARE = 0.25

#: Chunks whose text is looked at where the language of a document is in doubt.
SAMPLE_CHUNKS = 8

#: `to_tsvector` refuses more than a megabyte; far below that a chunk is no passage any more.
MAX_CHUNK_CHARACTERS = 200_000
#: An author's chunk that is longer is cut: forms of words are up to three times the words.
MAX_AUTHOR_CHUNK_CHARACTERS = 100_000
#: Characters of a chunk's key that its parts have in theirs.
MAX_PART_KEY = 1000
#: Of what a chunk's author puts before it, which is indexed with it.
MAX_CONTEXT_CHARACTERS = 20_000


@dataclass(frozen=True)
class Recipe:
    """How documents of a collection are chunked and embedded.

    `language` is the collection's, empty to detect it per document; `fallback_language` is used
    where a text is too short for detection.
    """

    chunker: str
    chunker_options: dict[str, Any]
    space_id: int
    model_name: str
    language: str
    fallback_language: str

    def digest(self, declared: dict[str, Any]) -> str:
        """Changes with everything except the bytes that affects the chunks."""
        own = json.dumps(declared, sort_keys=True)
        return hashlib.sha256(f"{self._written}{own}]".encode()).hexdigest()

    @cached_property
    def _written(self) -> str:
        """A JSON array of the values that all documents share."""
        return json.dumps([RECIPE_VERSION, asdict(self)], sort_keys=True)[:-1] + ", "


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk without its vector. Offsets count characters of the document's text."""

    ordinal: int
    text: str
    context: str
    start: int
    end: int
    token_count: int
    content_sha256: str
    heading_path: tuple[str, ...] = ()
    page: int | None = None
    key: str = ""
    summary: str = ""
    metadata: dict[str, Any] = field(default_factory=dict)
    language: str = ""  # ISO code where it is not the document's
    parent: int | None = None  # the same for all parts of one larger passage

    @property
    def embedding_text(self) -> str:
        """Context and text, as the embedding model reads them."""
        return embedding_text(self.context, self.text)


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A parsed and chunked document. `language` is an ISO code or empty."""

    title: str
    media_type: str
    rendering: str
    language: str
    content_sha256: str
    metadata: dict[str, Any]
    chunks: tuple[PreparedChunk, ...]

    @property
    def token_count(self) -> int:
        """Sum of the tokens of all chunks."""
        return sum(chunk.token_count for chunk in self.chunks)


class PagesUnread(Exception):
    """The document has pages that only OCR can read, and nobody to read them. `numbers` are
    theirs."""

    def __init__(self, numbers: Sequence[int]) -> None:
        super().__init__(f"{len(numbers)} pages must be read by OCR")
        self.numbers = tuple(numbers)


def parse_content(
    content: Content,
    *,
    name: str,
    declared: dict[str, Any],
    limits: ParserLimits,
    page_texts: Mapping[str, str] | None = None,
) -> ParsedDocument:
    """Parse in the sandbox, so that no file can harm this process. Raises ParseError; its message
    says how to fix the file. `page_texts` is what OCR read, by page number.

    A text that a program gave as a string is only decoded, which is linear and uses no library; the
    trip to the sandbox would be most of the work. If LibreOffice is there, an old Word or
    PowerPoint file is converted first, and an old or binary workbook if no text is found in it.
    """
    check_size(limits.max_bytes, content.size, name=name)
    file_name = str(declared.get("file_name") or name)
    if (
        content.is_given_text
        and content.data is not None
        and detect_media_type(content.data, name=file_name) == "text/plain"
    ):
        return parse(content.data, name=file_name, max_bytes=limits.max_bytes)
    parser_name = name if name.endswith(CHUNK_BUNDLE_SUFFIX) else file_name
    options = {"page_texts": dict(page_texts)} if page_texts else {}
    request = ParseRequest(name=parser_name, data=content.data, path=content.path, options=options)
    data = b""
    with suppress(OSError), content.open() as file:  # which the parser process reports
        head = file.read(HEAD_BYTES)
        data = head + file.read() if is_compound_file(head) else b""
    target = libreoffice.target_format(data)
    if not target:
        try:
            return parse_in_sandbox(request, limits=limits)
        except ParseError as error:
            if error.code not in _PERHAPS_READ or not libreoffice.reads_workbook(file_name):
                raise
            try:
                parsed = _parse_converted(request, "xlsx", limits)
            except ParseError:
                raise error from None
    else:
        parsed = _parse_converted(request, target, limits)
    with content.open() as file:
        media_type = detect_media_type(file.read(), name=file_name)
    return replace(parsed, media_type=media_type)


def _parse_converted(request: ParseRequest, target: str, limits: ParserLimits) -> ParsedDocument:
    converted = _convert_office(request, target, limits)
    parsed = parse_in_sandbox(replace(request, data=converted, path=None), limits=limits)
    # LibreOffice states its own language where the file states none.
    metadata = {name: value for name, value in parsed.metadata.items() if name != "language"}
    return replace(parsed, language="", metadata=metadata)


def _convert_office(request: ParseRequest, target: str, limits: ParserLimits) -> bytes:
    own = replace(
        limits,
        memory_bytes=max(limits.memory_bytes, libreoffice.MIN_MEMORY_BYTES),
        starts_programs=True,
        writes_files=True,
    )
    with TemporaryDirectory(prefix="ragsite-office-", ignore_cleanup_errors=True) as folder:
        return run_in_sandbox(
            replace(request, task="convert_office", options={"folder": folder, "target": target}),
            lambda header, body: bytes(body),
            limits=own,
        )


def chunk_parsed(
    parsed: ParsedDocument,
    *,
    name: str,
    recipe: Recipe,
    counter: TokenCounter,
    declared: dict[str, Any],
    embed: Embed | None = None,
    max_chunks: int | None = None,
    language: str | None = None,
) -> PreparedDocument:
    """Chunk a parsed document. `embed` serves chunkers that cut by meaning; `language` is that of
    `document_language`, where the caller knows it already.

    Raises ParseError, and whatever `embed` raises.
    """
    title = str(declared.get("title") or parsed.title)
    if language is None:
        language = document_language(parsed.text, declared, recipe, stated=parsed.language)
    most = None if max_chunks is None else max_chunks + 1
    headings = tuple(declared.get("headings", ()))
    chunks = tuple(islice(_cut_chunks(parsed, title, headings, recipe, counter, embed), most))
    if most is not None and len(chunks) == most:
        raise ParseError(
            "too_large",
            f"{name} gives more than {max_chunks:,} chunks. Split it, or make the chunks of its"
            " collection longer.",
        )
    if not chunks:
        raise ParseError("empty", f"{name} contains no text, so a search cannot find it.")
    return PreparedDocument(
        title=title[:500],
        media_type=parsed.media_type,
        rendering=parsed.rendering,
        language=language,
        content_sha256=content_sha256(parsed.text),
        metadata={**parsed.metadata, **declared.get("metadata", {})},
        chunks=chunks,
    )


def document_language(
    text: str, declared: Mapping[str, Any], recipe: Recipe, *, stated: str = ""
) -> str:
    """ISO code: the caller's, else the file's (`stated`), else the collection's; detected only if
    none of them gives one."""
    return str(
        declared.get("language")
        or stated
        or recipe.language
        or text_language(text, default=recipe.fallback_language)
    )


def evident_language(
    prepared: PreparedDocument, declared: Mapping[str, Any], recipe: Recipe
) -> str:
    """The document's language, empty where it is only what is taken for a text that does not tell
    its own."""
    if prepared.language != recipe.fallback_language:
        return prepared.language
    given = declared.get("language") or recipe.language
    sample = "\n".join(chunk.text for chunk in prepared.chunks[:SAMPLE_CHUNKS])[:SAMPLE_CHARACTERS]
    return prepared.language if given or detect_language(sample) else ""


def _cut_chunks(
    parsed: ParsedDocument,
    title: str,
    headings: tuple[str, ...],
    recipe: Recipe,
    counter: TokenCounter,
    embed: Embed | None,
) -> Iterable[PreparedChunk]:
    """`headings` are those that the whole text is under."""
    if parsed.chunks:
        return _author_chunks(parsed, counter)
    limit = max_context_tokens(counter)
    contexts: dict[tuple[str, ...], str] = {}
    contexts[()] = chunk_context(title, headings, counter, limit)
    above: list[tuple[int, str]] = []
    for heading in parsed.headings:
        above = [entry for entry in above if entry[0] < heading.level]
        above.append((heading.level, heading.title))
        path = tuple(name for _, name in above)
        contexts[path] = chunk_context(title, (*headings, *path), counter, limit)
    reserve = max(counter.count(context) for context in contexts.values()) + 1
    try:
        chunker = get_chunker(
            recipe.chunker,
            counter=counter,
            reserve=reserve,
            embed=embed,
            **recipe.chunker_options,
        )
        spans = chunker.split(parsed)
    except ChunkerError as error:
        raise ParseError("too_large", str(error)) from error
    labels = {page.number: page.label for page in parsed.pages if page.label}
    return (
        PreparedChunk(
            ordinal=ordinal,
            text=(text := parsed.text[span.start : span.end]),
            context=(context := contexts.get(span.heading_path, title)),
            start=span.start,
            end=span.end,
            token_count=span.token_count,
            heading_path=(*headings, *span.heading_path),
            page=span.page,
            content_sha256=chunk_digest(context, text),
            metadata={PAGE_LABEL: labels[span.page]} if span.page in labels else {},
            parent=span.parent,
        )
        for ordinal, span in enumerate(spans)
    )


def max_context_tokens(counter: TokenCounter) -> int:
    """Tokens that a chunk's context may have."""
    return int(counter.max_tokens * CONTEXT_SHARE)


def chunk_context(title: str, path: Sequence[str], counter: TokenCounter, limit: int) -> str:
    """Title and headings; if too long, the title and the innermost heading, cut."""
    parts = [title, *(heading for heading in path if heading != title)]
    context = " > ".join(part for part in parts if part)
    if counter.count(context) <= limit:
        return context
    words = " > ".join(part for part in (parts[0], parts[-1] if path else "") if part).split()
    low, high = 0, len(words)
    while low < high:
        middle = (low + high + 1) // 2
        if counter.count(" ".join(words[:middle])) <= limit:
            low = middle
        else:
            high = middle - 1
    return " ".join(words[:low])


def _author_chunks(parsed: ParsedDocument, counter: TokenCounter) -> Iterable[PreparedChunk]:
    """Each chunk as its author cut it. One that is too long to be indexed is cut into parts, whose
    keys have their numbers, such as `a_chunk_007:2`."""
    ordinals = count()
    for chunk, (offset, _) in zip(parsed.chunks, chunk_offsets(parsed), strict=True):
        if len(chunk.context) > MAX_CONTEXT_CHARACTERS:
            raise ParseError(
                "too_large",
                f"The contextual_prefix or the titles of {chunk.key} have {len(chunk.context):,}"
                f" characters; {MAX_CONTEXT_CHARACTERS:,} are allowed. Shorten them.",
            )
        extents = [(0, len(chunk.text))]
        if len(chunk.text) > MAX_AUTHOR_CHUNK_CHARACTERS:
            whole = ParsedDocument(text=chunk.text, media_type="text/plain", title="")
            reserve = min(counter.count(chunk.context) + 1, max_context_tokens(counter))
            spans = get_chunker("recursive", counter=counter, reserve=reserve).split(whole)
            extents = [(span.start, span.end) for span in spans]
        for number, (start, end) in enumerate(extents, 1):
            text = chunk.text[start:end]
            is_whole = len(extents) == 1
            key = chunk.key if is_whole else f"{chunk.key[:MAX_PART_KEY]}:{number}"
            yield PreparedChunk(
                ordinal=next(ordinals),
                text=text,
                context=chunk.context,
                start=offset + start,
                end=offset + end,
                token_count=(is_whole and chunk.token_count) or counter.count(text),
                heading_path=chunk.heading_path,
                page=chunk.page,
                key=key,
                summary=chunk.summary,
                metadata=chunk.metadata,
                content_sha256=chunk_digest(chunk.context, text),
                # Records of one source may be in several languages, such as a leaflet with
                # translations.
                language=detect_language(text),
            )


def chunk_digest(context: str, text: str) -> str:
    """The chunk's content hash, of its context and its text."""
    return hashlib.sha256(f"{len(context)}:{context}{text}".encode()).hexdigest()


#: A document is loaded in one transaction, and its vectors are in memory together.
MAX_VECTOR_BYTES = 256 * 1024 * 1024
VECTOR_ITEM_BYTES = 4


def recipe_for(collection: Collection) -> Recipe:
    """How this collection's documents are chunked and embedded."""
    return Recipe(
        chunker=collection.chunker,
        chunker_options=collection.chunker_options,
        space_id=collection.space_id,
        model_name=collection.space.model_name,
        language=collection.default_language,
        fallback_language=settings.FALLBACK_LANGUAGE,
    )


def prepare_for(
    collection: Collection,
    content: Content | bytes,
    *,
    name: str,
    declared: dict[str, Any],
    watch: Stopwatch,
    read_pages: Callable[[Sequence[int]], PageTexts] | None = None,
) -> PreparedDocument:
    """Parse and chunk a document of `collection`, timed by `watch`. Raises ParseError.

    `read_pages` gives the texts of pages without any; what it raises is raised, and without it
    PagesUnread.
    """
    limits = parser_limits()
    if isinstance(content, bytes):
        content = content_from_bytes(content)
    with watch("parse"):
        parsed = parse_content(content, name=name, declared=declared, limits=limits)
    if parsed.scans:
        if read_pages is None:
            raise PagesUnread(parsed.scans)
        with watch("ocr"):
            read = read_pages(parsed.scans)
        with watch("parse"):
            parsed = parse_content(
                content, name=name, declared=declared, limits=limits, page_texts=read.texts
            )
        parsed = replace(parsed, metadata={**parsed.metadata, **read.metadata})
    with watch("chunk"):
        recipe = recipe_for(collection)
        language = document_language(parsed.text, declared, recipe, stated=parsed.language)
        embedder = (
            cutting_embedder(collection.space, language)
            if collection.automatic_model
            else embedder_for(collection.space)
        )
        return chunk_parsed(
            parsed,
            name=name,
            recipe=recipe,
            counter=embedder.token_counter(),
            declared=declared,
            embed=embedder.embed_documents,
            max_chunks=MAX_VECTOR_BYTES // (VECTOR_ITEM_BYTES * embedder.dimensions),
            language=language,
        )


_CHUNK_FIELDS = tuple(each.name for each in fields(PreparedChunk))
_DOCUMENT_FIELDS = tuple(f.name for f in fields(PreparedDocument) if f.name != "chunks")
#: Of a packed document, unpacked at a time.
_UNPACK_BYTES = 64 * 1024


def pack_document(document: PreparedDocument) -> bytes:
    """Compressed form for the embed queue: a line of JSON for the document, then one per chunk, so
    that no second copy of the text is needed."""
    compressor = zlib.compressobj(level=1)
    packed = bytearray()
    own = {name: getattr(document, name) for name in _DOCUMENT_FIELDS}
    chunks = ({name: getattr(chunk, name) for name in _CHUNK_FIELDS} for chunk in document.chunks)
    for values in chain([own], chunks):
        packed += compressor.compress(json.dumps(values).encode() + b"\n")
    packed += compressor.flush()
    return bytes(packed)


def unpack_document(payload: bytes) -> PreparedDocument:
    """The prepared document from the bytes of `pack_document`."""

    def unpacked() -> Iterator[Any]:
        decompressor = zlib.decompressobj()
        rest = b""
        for start in range(0, len(payload), _UNPACK_BYTES):
            rest += decompressor.decompress(payload[start : start + _UNPACK_BYTES])
            *lines, rest = rest.split(b"\n")
            yield from map(json.loads, lines)

    values = unpacked()
    own = next(values)
    chunks = tuple(
        PreparedChunk(**{**chunk, "heading_path": tuple(chunk["heading_path"])}) for chunk in values
    )
    return PreparedDocument(chunks=chunks, **own)
