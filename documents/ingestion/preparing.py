"""Parse and cut: from a source's bytes to chunks that only lack their vectors."""

import hashlib
import json
import zlib
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from documents.chunkers import ChunkerError, Embed, Span, TokenCounter, get_chunker
from documents.ingestion.sources import CHUNK_BUNDLE_SUFFIX
from documents.languages import detect_language
from documents.parsers import ParsedChunk, ParsedDocument, ParseError, content_sha256, parse
from documents.parsers.chunk_json import assemble, chunk_offsets, parse_chunk_json

#: Changes when the same bytes would be cut differently, so that documents are cut anew.
RECIPE_VERSION = 3

#: The context (title and headings) may take this share of what a model reads of a chunk.
CONTEXT_SHARE = 0.25

#: `to_tsvector` refuses more than a megabyte; far below that a chunk is no passage any more.
MAX_CHUNK_CHARACTERS = 200_000


@dataclass(frozen=True, slots=True)
class Recipe:
    """How documents of a collection are cut and embedded.

    `language` is the collection's, empty to detect it for each document; `fallback_language` is
    taken where a text is too short to tell.
    """

    chunker: str
    chunker_options: dict[str, Any]
    space_id: int
    model_name: str
    language: str
    fallback_language: str

    def digest(self, declared: dict[str, Any]) -> str:
        """Changes with everything but the bytes that decides about the chunks."""
        parts = [RECIPE_VERSION, asdict(self), declared]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class PreparedChunk:
    """A chunk that only lacks its vector. Offsets count characters of the document's text."""

    ordinal: int
    text: str
    context: str
    start: int
    end: int
    token_count: int
    heading_path: tuple[str, ...]
    page: int | None
    key: str
    summary: str
    metadata: dict[str, Any]
    content_sha256: str
    language: str = ""  # ISO code where it is not the document's
    parent: int | None = None  # the same for all parts of one larger passage

    @property
    def embedding_text(self) -> str:
        """What the model reads."""
        return embedding_text(self.context, self.text)


@dataclass(frozen=True, slots=True)
class PreparedDocument:
    """A parsed and cut document. `language` is an ISO code or empty."""

    title: str
    media_type: str
    rendering: str
    language: str
    content_sha256: str
    metadata: dict[str, Any]
    chunks: tuple[PreparedChunk, ...]

    @property
    def token_count(self) -> int:
        """Tokens of all chunks."""
        return sum(chunk.token_count for chunk in self.chunks)


def embedding_text(context: str, text: str) -> str:
    """Context and text as one, in the order in which they are indexed."""
    return f"{context}\n{text}" if context else text


def prepare(
    data: bytes,
    *,
    name: str,
    recipe: Recipe,
    counter: TokenCounter,
    declared: dict[str, Any],
    max_bytes: int,
    embed: Embed | None = None,
) -> PreparedDocument:
    """Parse `data` and cut it into chunks. Raises ParseError with the cure in its message."""
    parsed = _parse(data, name=name, declared=declared, max_bytes=max_bytes)
    return prepare_parsed(
        parsed, name=name, recipe=recipe, counter=counter, declared=declared, embed=embed
    )


def prepare_parsed(
    parsed: ParsedDocument,
    *,
    name: str,
    recipe: Recipe,
    counter: TokenCounter,
    declared: dict[str, Any],
    embed: Embed | None = None,
) -> PreparedDocument:
    """Cut a document that is parsed already. `embed` serves chunkers that cut by meaning.

    Raises ParseError, and whatever `embed` raises.
    """
    title = str(declared.get("title") or parsed.title)
    language = str(
        declared.get("language")
        or parsed.language
        or recipe.language
        or detect_language(parsed.text, default=recipe.fallback_language)
    )
    chunks = tuple(_chunks(parsed, title, recipe, counter, embed))
    if not chunks:
        raise ParseError("empty", f"{name} holds no text. Nothing of it could be found.")
    return PreparedDocument(
        title=title[:500],
        media_type=parsed.media_type,
        rendering=parsed.rendering,
        language=language,
        content_sha256=content_sha256(parsed.text),
        metadata={**parsed.metadata, **declared.get("metadata", {})},
        chunks=chunks,
    )


def _parse(data: bytes, *, name: str, declared: dict[str, Any], max_bytes: int) -> ParsedDocument:
    if len(data) > max_bytes:
        raise ParseError(
            "too_large",
            f"{name} has {len(data):,} bytes; {max_bytes:,} are allowed. Split it, or raise"
            " RAGSITE_MAX_UPLOAD_BYTES.",
        )
    if name.endswith(CHUNK_BUNDLE_SUFFIX):
        lines = data.splitlines()
        return assemble([parse_chunk_json(line, name=name) for line in lines])
    return parse(data, name=str(declared.get("file_name") or name), max_bytes=max_bytes)


def _chunks(
    parsed: ParsedDocument,
    title: str,
    recipe: Recipe,
    counter: TokenCounter,
    embed: Embed | None,
) -> Iterable[PreparedChunk]:
    if parsed.chunks:
        return _given_chunks(parsed, counter)
    limit = int(counter.max_tokens * CONTEXT_SHARE)
    contexts = {
        path: _context(title, path, counter, limit) for path in [(), *_heading_paths(parsed)]
    }
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
    return (
        _cut_chunk(parsed.text, span, ordinal, contexts.get(span.heading_path, title))
        for ordinal, span in enumerate(spans)
    )


def _heading_paths(parsed: ParsedDocument) -> Iterable[tuple[str, ...]]:
    """Every chain of headings that some position of the text stands under."""
    chain: list[tuple[int, str]] = []
    for heading in parsed.headings:
        chain = [entry for entry in chain if entry[0] < heading.level]
        chain.append((heading.level, heading.title))
        yield tuple(entry[1] for entry in chain)


def _context(title: str, path: Sequence[str], counter: TokenCounter, limit: int) -> str:
    """Title and headings; where those are too long, the title and the innermost heading, cut."""
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


def _cut_chunk(text: str, span: Span, ordinal: int, context: str) -> PreparedChunk:
    chunk = text[span.start : span.end]
    return PreparedChunk(
        ordinal=ordinal,
        text=chunk,
        context=context,
        start=span.start,
        end=span.end,
        token_count=span.token_count,
        heading_path=span.heading_path,
        page=span.page,
        key="",
        summary="",
        metadata={},
        content_sha256=_digest(context, chunk),
        parent=span.parent,
    )


def _given_chunks(parsed: ParsedDocument, counter: TokenCounter) -> Iterable[PreparedChunk]:
    for ordinal, (chunk, (start, _)) in enumerate(
        zip(parsed.chunks, chunk_offsets(parsed), strict=True)
    ):
        if len(chunk.text) > MAX_CHUNK_CHARACTERS:
            raise ParseError(
                "too_large",
                f"{chunk.key} has {len(chunk.text):,} characters; a chunk may have"
                f" {MAX_CHUNK_CHARACTERS:,}. Split it.",
            )
        yield _given_chunk(chunk, ordinal, start, counter)


def _given_chunk(
    chunk: ParsedChunk, ordinal: int, start: int, counter: TokenCounter
) -> PreparedChunk:
    return PreparedChunk(
        ordinal=ordinal,
        text=chunk.text,
        context=chunk.context,
        start=start,
        end=start + len(chunk.text),
        token_count=chunk.token_count or counter.count(chunk.text),
        heading_path=chunk.heading_path,
        page=chunk.page,
        key=chunk.key,
        summary=chunk.summary,
        metadata=chunk.metadata,
        content_sha256=_digest(chunk.context, chunk.text),
        # Records of one source may be in several languages, such as a leaflet with translations.
        language=detect_language(chunk.text),
    )


def _digest(context: str, text: str) -> str:
    return hashlib.sha256(f"{len(context)}:{context}{text}".encode()).hexdigest()


def pack(document: PreparedDocument) -> bytes:
    """Compressed form for the way from one queue to the next."""
    return zlib.compress(json.dumps(asdict(document)).encode(), level=1)


def unpack(payload: bytes) -> PreparedDocument:
    """Reverse of `pack`."""
    fields = json.loads(zlib.decompress(payload))
    chunks = tuple(
        PreparedChunk(**{**chunk, "heading_path": tuple(chunk["heading_path"])})
        for chunk in fields.pop("chunks")
    )
    return PreparedDocument(chunks=chunks, **fields)
