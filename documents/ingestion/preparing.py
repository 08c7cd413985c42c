"""Parse and cut: from a source's content to chunks that only lack their vectors."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from itertools import islice
from typing import Any

from documents.chunkers import ChunkerError, Embed, Span, TokenCounter, get_chunker
from documents.ingestion.contents import Content, content_of_bytes, refuse_above
from documents.ingestion.stopwatch import Stopwatch
from documents.languages import detect_language
from documents.models.chunk import embedding_text
from documents.parsers import ParsedChunk, ParsedDocument, ParseError, content_sha256, parse
from documents.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX, chunk_offsets
from documents.parsers.registry import detect_media_type
from documents.parsing import ParserLimits, Request, parse_apart

#: Changes when the same bytes would be cut differently, so that documents are cut anew.
RECIPE_VERSION = 3

#: The context (title and headings) may take this share of what a model reads of a chunk.
CONTEXT_SHARE = 0.25

#: `to_tsvector` refuses more than a megabyte; far below that a chunk is no passage any more.
MAX_CHUNK_CHARACTERS = 200_000
#: Of what a chunk's author puts before it, which is indexed with it.
MAX_CONTEXT_CHARACTERS = 20_000


@dataclass(frozen=True)
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
        said = json.dumps(declared, sort_keys=True)
        return hashlib.sha256(f"{self._written}{said}]".encode()).hexdigest()

    @cached_property
    def _written(self) -> str:
        """A JSON array that begins with what is the same for all documents."""
        return json.dumps([RECIPE_VERSION, asdict(self)], sort_keys=True)[:-1] + ", "


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


def prepare(
    content: Content | bytes,
    *,
    name: str,
    recipe: Recipe,
    counter: TokenCounter,
    declared: dict[str, Any],
    limits: ParserLimits,
    max_chunks: int,
    embed: Embed | None = None,
    watch: Stopwatch | None = None,
) -> PreparedDocument:
    """Parse a content and cut it into at most `max_chunks` chunks.

    Raises ParseError with the cure in its message.
    """
    watch = watch or Stopwatch()
    if isinstance(content, bytes):
        content = content_of_bytes(content)
    with watch("parse"):
        parsed = _parse(content, name=name, declared=declared, limits=limits)
    with watch("chunk"):
        return prepare_parsed(
            parsed,
            name=name,
            recipe=recipe,
            counter=counter,
            declared=declared,
            embed=embed,
            max_chunks=max_chunks,
        )


def prepare_parsed(
    parsed: ParsedDocument,
    *,
    name: str,
    recipe: Recipe,
    counter: TokenCounter,
    declared: dict[str, Any],
    embed: Embed | None = None,
    max_chunks: int | None = None,
) -> PreparedDocument:
    """Cut a document that is parsed already. `embed` serves chunkers that cut by meaning.

    Raises ParseError, and whatever `embed` raises.
    """
    title = str(declared.get("title") or parsed.title)
    language = language_of(parsed.text, declared, recipe, told=parsed.language)
    most = None if max_chunks is None else max_chunks + 1
    chunks = tuple(islice(_chunks(parsed, title, recipe, counter, embed), most))
    if most is not None and len(chunks) == most:
        raise ParseError(
            "too_large",
            f"{name} gives more than {max_chunks:,} chunks. Split it, or let the collection's"
            " chunks be longer.",
        )
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


def language_of(text: str, declared: Mapping[str, Any], recipe: Recipe, *, told: str = "") -> str:
    """ISO code: what the caller says, then the file (`told`), then the collection; only where none
    of them says anything is it detected."""
    return str(
        declared.get("language")
        or told
        or recipe.language
        or detect_language(text, default=recipe.fallback_language)
    )


def _parse(
    content: Content, *, name: str, declared: dict[str, Any], limits: ParserLimits
) -> ParsedDocument:
    """In a process apart, which no file can harm us through.

    A text that a program gave as such is only decoded, which is linear and no library's work: there
    the way to the process and back would be most of the work.
    """
    refuse_above(limits.max_bytes, content.size, name=name)
    file_name = str(declared.get("file_name") or name)
    if _is_given_prose(content, file_name):
        return parse(content.data or b"", name=file_name, max_bytes=limits.max_bytes)
    shown = name if name.endswith(CHUNK_BUNDLE_SUFFIX) else file_name
    return parse_apart(Request(name=shown, data=content.data, path=content.path), limits=limits)


def _is_given_prose(content: Content, name: str) -> bool:
    data = content.data if content.is_given_text else None
    return data is not None and detect_media_type(data, name=name) == "text/plain"


def _chunks(
    parsed: ParsedDocument,
    title: str,
    recipe: Recipe,
    counter: TokenCounter,
    embed: Embed | None,
) -> Iterable[PreparedChunk]:
    if parsed.chunks:
        return _given_chunks(parsed, counter)
    limit = context_limit(counter)
    contexts = {
        path: contextual_title(title, path, counter, limit)
        for path in [(), *_heading_paths(parsed)]
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


def context_limit(counter: TokenCounter) -> int:
    """Tokens that a chunk's context may have."""
    return int(counter.max_tokens * CONTEXT_SHARE)


def contextual_title(title: str, path: Sequence[str], counter: TokenCounter, limit: int) -> str:
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
        content_sha256=chunk_digest(context, chunk),
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
        if len(chunk.context) > MAX_CONTEXT_CHARACTERS:
            raise ParseError(
                "too_large",
                f"The contextual_prefix, or the titles, of {chunk.key} have {len(chunk.context):,}"
                f" characters; {MAX_CONTEXT_CHARACTERS:,} are allowed. Shorten them.",
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
        content_sha256=chunk_digest(chunk.context, chunk.text),
        # Records of one source may be in several languages, such as a leaflet with translations.
        language=detect_language(chunk.text),
    )


def chunk_digest(context: str, text: str) -> str:
    """By which a chunk is known: of its context and its text."""
    return hashlib.sha256(f"{len(context)}:{context}{text}".encode()).hexdigest()
