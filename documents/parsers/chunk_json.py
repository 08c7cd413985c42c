"""Chunk JSON: chunks that their author cut and described, each a record; many make one document.

`documents.parsers.chunk_records` finds the records in a file.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from io import BytesIO
from itertools import accumulate
from pathlib import PurePosixPath
from typing import Any

from common.wording import counted
from documents.parsers.base import (
    DEFAULT_LIMITS,
    Limits,
    ParsedChunk,
    ParsedDocument,
    ParseError,
)
from documents.parsers.chunk_records import (
    FLAT_FIELDS,
    LINE_SUFFIXES,
    TEXT_FIELDS,
    chunk_layout,
    is_chunk_json_name,
    record_name,
    record_spans,
)
from documents.parsers.json_fields import MAX_INTEGER, Fields, load_object
from documents.parsers.metadata import language_code, readable_title

CHUNK_JSON = "application/vnd.ragsite.chunk+json"
#: A stored bundle of chunk JSON records, one a line: all chunks of one document.
CHUNK_BUNDLE_SUFFIX = ".chunks.jsonl"
SEPARATOR = "\n\n"
MIN_CHARACTERS = 10
MAX_ID_CHARACTERS = 1024

_NUMBERED_ID = re.compile(r"_chunk_?[0-9]*\Z", re.I)
_NUMBERED_NAME = re.compile(r"(.*):([0-9]+)", re.S)


@dataclass(frozen=True, slots=True)
class ChunkRecord:
    """One record: which document it belongs to, where in it, and the chunk."""

    chunk_id: str
    source_document: str
    ordinal: int
    chunk: ParsedChunk
    name: str


class ChunkJsonParser:
    """A file of chunk records, all of one document."""

    media_types: tuple[str, ...] = (CHUNK_JSON,)
    suffixes: tuple[str, ...] = ()

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        def opened() -> BytesIO:
            return BytesIO(data)

        layout = chunk_layout(name, opened) or "object"
        return assemble(
            [
                parse_chunk_json(
                    data[span.offset : span.offset + span.size],
                    name=record_name(name, span, layout),
                )
                for span in record_spans(opened, layout)
            ]
        )


def parse_chunk_json(data: bytes, *, name: str) -> ChunkRecord:
    """Read one record; `ParseError` names the field that is wrong and what it must be.

    The titles, `summary`, `token_count` and the ids are looked for at the top, then in `metadata`.
    Ids that are missing are made from `name`: of a file, or of a record in it, `chunks.json:12`.
    """
    record = Fields(load_object(data))
    metadata = record.mapping("metadata")

    def holder(field: str) -> Fields:
        return metadata if record.values.get(field) in (None, "") else record

    chunk_id, source, number = _ids(
        holder("chunk_id").optional_text("chunk_id").strip(),
        holder("source_document").optional_text("source_document").strip(),
        name,
    )
    titles = [
        holder(field).optional_text(field).strip() for field in ("chapter_title", "section_title")
    ] + [title.strip() for title in holder("subsection_title").texts("subsection_title")]
    if any(titles) and not titles[0]:
        titles[0] = document_title(source)  # or else `section=` would look for the chapter's place
    path = tuple(filter(None, titles))
    prefix = record.optional_text("contextual_prefix").strip()
    number_of_page = holder("page").values.get("page")
    # A page that is no number stays in the metadata and fails nothing.
    is_page = type(number_of_page) is int and 0 < number_of_page <= MAX_INTEGER
    page = number_of_page if is_page else None
    text_field = next((field for field in TEXT_FIELDS if record.values.get(field)), TEXT_FIELDS[0])
    chunk = ParsedChunk(
        key=chunk_id,
        text=_shown_text(record, text_field, prefix),
        context=prefix or " > ".join(path),
        heading_path=path,
        summary=holder("summary").optional_text("summary"),
        # No token is shorter than a byte, and nothing but the record can have been counted.
        token_count=holder("token_count").optional_positive(
            "token_count", most=len(data), cure="Count the tokens of the text, or leave it out."
        ),
        page=page,
        metadata=_rest(record, metadata, text_field=text_field, page=page),
    )
    digits = re.search(r"([0-9]{1,18})\Z", chunk_id)
    return ChunkRecord(
        chunk_id=chunk_id,
        source_document=source,
        ordinal=int(digits[1]) if digits else number,
        chunk=chunk,
        name=name,
    )


def document_title(source: str) -> str:
    """A title from a `source_document`, which may be the name of a file."""
    is_file = source.lower().endswith((".json", *LINE_SUFFIXES))
    return readable_title(source if is_file else f"{source}.json")


def parse_bundle(data: bytes, *, name: str) -> ParsedDocument:
    """One document of records, one a line."""
    lines = enumerate(data.splitlines(), start=1)
    return assemble([parse_chunk_json(line, name=f"{name}:{n}") for n, line in lines])


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
        title=document_title(source),
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


def _ids(chunk_id: str, source: str, name: str) -> tuple[str, str, int]:
    """`chunk_id` and `source_document`, made from `name` where they are empty, and the record's
    number in its file, or 0."""
    if len(chunk_id) > MAX_ID_CHARACTERS:
        raise ParseError(
            "malformed",
            f"chunk_id has {len(chunk_id):,} characters, it may have {MAX_ID_CHARACTERS:,}."
            " Give a shorter one.",
        )
    file_name = PurePosixPath(name.replace("\\", "/")).name
    numbered = _NUMBERED_NAME.fullmatch(file_name)
    file_name, number = (numbered[1], int(numbered[2])) if numbered else (file_name, 0)
    stem = PurePosixPath(file_name).stem if is_chunk_json_name(file_name) else file_name
    if not source:
        whole = chunk_id if _NUMBERED_ID.search(chunk_id) else stem
        source = _NUMBERED_ID.sub("", whole) or whole
    return chunk_id or (f"{stem}_chunk_{number:03}" if number else stem), source, number


def _shown_text(record: Fields, field: str, prefix: str) -> str:
    text = record.text(field, cure="Give the text of the chunk.")
    if len(text) < MIN_CHARACTERS:
        raise ParseError(
            "malformed",
            f"{field} has {counted(len(text), 'character')}, it must have at least"
            f" {MIN_CHARACTERS}. Join it with its neighbour.",
        )
    original = record.optional_text("original_text").strip() or text
    return original.removeprefix(prefix).strip() or original


def _rest(record: Fields, metadata: Fields, *, text_field: str, page: int | None) -> dict[str, Any]:
    """All that is in the record and has no field of its own."""
    known = FLAT_FIELDS if page is None else FLAT_FIELDS | {"page"}
    own = known | {text_field, "original_text", "contextual_prefix", "metadata"}
    outer = {key: value for key, value in record.values.items() if key not in own}
    return outer | {key: value for key, value in metadata.values.items() if key not in known}


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
