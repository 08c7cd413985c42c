"""Chunk JSON: one file a chunk, cut and described by its author; many make one document."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Limits,
    ParsedChunk,
    ParsedDocument,
    ParseError,
)
from documents.parsers.json_fields import MAX_INTEGER, Fields, load_object
from documents.parsers.metadata import language_code, readable_title

CHUNK_JSON = "application/vnd.ragsite.chunk+json"
#: A stored bundle of chunk JSON records, one a line: all chunks of one document.
CHUNK_BUNDLE_SUFFIX = ".chunks.jsonl"
SEPARATOR = "\n\n"
MIN_CHARACTERS = 10
MAX_ID_CHARACTERS = 1024

_FIELDS = frozenset(
    {
        "chunk_id",
        "source_document",
        "chunk_text",
        "original_text",
        "contextual_prefix",
        "token_count",
        "metadata",
    }
)
_METADATA_FIELDS = frozenset({"chapter_title", "section_title", "subsection_title", "summary"})


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One chunk file: which document it belongs to, where in it, and the chunk."""

    chunk_id: str
    source_document: str
    ordinal: int
    chunk: ParsedChunk
    name: str


class ChunkJsonParser:
    """A single chunk file as a document of one chunk; `assemble` joins many."""

    media_types: tuple[str, ...] = (CHUNK_JSON,)
    suffixes: tuple[str, ...] = ()

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        return assemble([parse_chunk_json(data, name=name)])


def is_chunk_json_name(name: str) -> bool:
    """True for `*_chunk*.json`, in any folder and any case."""
    file_name = PurePosixPath(name.replace("\\", "/")).name
    return fnmatchcase(file_name.lower(), "*_chunk*.json")


def parse_chunk_json(data: bytes, *, name: str) -> ChunkRecord:
    """Read one file; `ParseError` names the field that is wrong and what it must be."""
    record = Fields(load_object(data))
    metadata = record.mapping("metadata")
    chunk_id = record.text("chunk_id", cure="Give each chunk an id such as leaflet_chunk_001.")
    if len(chunk_id) > MAX_ID_CHARACTERS:
        raise ParseError(
            "malformed",
            f"chunk_id has {len(chunk_id):,} characters, it may have {MAX_ID_CHARACTERS:,}."
            " Give a shorter one.",
        )
    path = _heading_path(metadata)
    prefix = record.optional_text("contextual_prefix").strip()
    chunk = ParsedChunk(
        key=chunk_id,
        text=_shown_text(record, prefix),
        context=prefix or " > ".join(path),
        heading_path=path,
        summary=metadata.optional_text("summary"),
        token_count=record.positive("token_count", cure="Count the tokens of chunk_text."),
        page=_page(metadata),
        metadata=_rest(record, metadata),
    )
    return ChunkRecord(
        chunk_id=chunk_id,
        source_document=record.text("source_document", cure="Name the document it is part of."),
        ordinal=_ordinal(chunk_id),
        chunk=chunk,
        name=name,
    )


def parse_bundle(data: bytes, *, name: str) -> ParsedDocument:
    """One document of records, one a line."""
    return assemble([parse_chunk_json(line, name=name) for line in data.splitlines()])


def assemble(records: Sequence[ChunkRecord]) -> ParsedDocument:
    """One document of all records of one `source_document`, in the order of their numbers."""
    ordered = sorted(records, key=lambda record: (record.ordinal, record.chunk_id))
    if not ordered:
        raise ParseError("empty", "There is no chunk. Give at least one chunk file.")
    _refuse_mixture(ordered)
    _refuse_duplicates(ordered)
    source = ordered[0].source_document
    chunks = tuple(record.chunk for record in ordered)
    languages = {language_code(chunk.metadata.get("language")) for chunk in chunks}
    return ParsedDocument(
        text=SEPARATOR.join(chunk.text for chunk in chunks),
        media_type=CHUNK_JSON,
        title=readable_title(f"{source}.json"),
        metadata={"source_document": source},
        language=languages.pop() if len(languages) == 1 else "",
        chunks=chunks,
    )


def chunk_offsets(document: ParsedDocument) -> list[tuple[int, int]]:
    """Start and end of each of the document's own chunks in its text."""
    lengths = (len(chunk.text) + len(SEPARATOR) for chunk in document.chunks)
    starts = accumulate(lengths, initial=0)
    return [
        (start, start + len(chunk.text))
        for start, chunk in zip(starts, document.chunks, strict=False)
    ]


def _heading_path(metadata: Fields) -> tuple[str, ...]:
    titles = [metadata.optional_text("chapter_title"), metadata.optional_text("section_title")]
    stripped = (title.strip() for title in titles + metadata.texts("subsection_title"))
    return tuple(title for title in stripped if title)


def _shown_text(record: Fields, prefix: str) -> str:
    chunk_text = record.text("chunk_text", cure="Give the text of the chunk.")
    if len(chunk_text) < MIN_CHARACTERS:
        raise ParseError(
            "malformed",
            f"chunk_text has {len(chunk_text)} characters, it must have at least "
            f"{MIN_CHARACTERS}. Join it with its neighbour.",
        )
    original = record.optional_text("original_text").strip() or chunk_text
    return original.removeprefix(prefix).strip() or original


def _page(metadata: Fields) -> int | None:
    """A page is a nicety: one that is no number stays in the metadata and fails nothing."""
    page = metadata.values.get("page")
    return page if type(page) is int and 0 < page <= MAX_INTEGER else None


def _rest(record: Fields, metadata: Fields) -> dict[str, Any]:
    """All that is in the file and has no field of its own."""
    outer = {key: value for key, value in record.values.items() if key not in _FIELDS}
    known = _METADATA_FIELDS if _page(metadata) is None else _METADATA_FIELDS | {"page"}
    inner = {key: value for key, value in metadata.values.items() if key not in known}
    return outer | inner


def _ordinal(chunk_id: str) -> int:
    digits = re.search(r"([0-9]{1,18})\Z", chunk_id)
    return int(digits[1]) if digits else 0


def _refuse_mixture(records: Sequence[ChunkRecord]) -> None:
    first = records[0]
    for record in records:
        if record.source_document != first.source_document:
            raise ParseError(
                "malformed",
                f"{first.chunk_id[:200]} is of {first.source_document[:200]} but "
                f"{record.chunk_id[:200]} is of {record.source_document[:200]}. Give the chunks of"
                " one source_document.",
            )


def _refuse_duplicates(records: Sequence[ChunkRecord]) -> None:
    seen: dict[str, ChunkRecord] = {}
    for record in records:
        twin = seen.setdefault(record.chunk_id, record)
        if twin is not record:
            raise ParseError(
                "malformed",
                f"The id {record.chunk_id[:200]} is in {twin.name} and in {record.name}. "
                "Number the chunks without repeats.",
            )
