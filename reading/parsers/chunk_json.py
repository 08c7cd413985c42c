"""Chunk JSON: chunks that their author cut and described, one record each; many records make one
document. `chunk_layout` and `record_spans` find records in a file by offset, `parse_chunk_json`
reads one."""

import json
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from io import BytesIO
from itertools import accumulate, count, islice
from pathlib import PurePosixPath
from typing import IO, Any, Literal

from reading.parsers.base import (
    DEFAULT_LIMITS,
    Limits,
    ParsedChunk,
    ParsedDocument,
    ParseError,
)
from reading.parsers.normalise import (
    MetadataTooLargeError,
    json_safe,
    language_code,
    readable_title,
    refuse_constant,
)

Layout = Literal["object", "array", "lines"]
#: Opens the file at its beginning.
Opener = Callable[[], AbstractContextManager[IO[bytes]]]

#: Bytes of one record: the longest chunk, twice, in any encoding of JSON.
MAX_RECORD_BYTES = 8 * 1024 * 1024
LINE_SUFFIXES = (".jsonl", ".ndjson")

#: Where a record's text may be; the first that is there.
TEXT_FIELDS = ("chunk_text", "text", "content", "page_content")
TITLE_FIELDS = frozenset({"chapter_title", "section_title", "subsection_title"})
#: At the top of a record, or under its `metadata`.
FLAT_FIELDS = TITLE_FIELDS | {"chunk_id", "source_document", "summary", "token_count"}
_CHUNK_FIELD_NAMES = FLAT_FIELDS | {"chunk_text", "contextual_prefix"}

_SAMPLED_RECORDS = 10
_FIRST_BYTES = 4096
_BLOCK = 64 * 1024
_UTF8_BOM = b"\xef\xbb\xbf"
_CHUNK_FIELD_PATTERN = re.compile(
    b'"(?:chunk_id|' + "|".join(sorted(TITLE_FIELDS)).encode() + b')"'
)
_OUTSIDE_STRING = re.compile(rb'["\[\]{},]')
_INSIDE_STRING = re.compile(rb'["\\]')


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """`size` bytes of the file from `offset` on; records (or lines) count from 1."""

    number: int
    offset: int
    size: int


def is_chunk_record(value: Any) -> bool:
    """Whether a JSON value is a chunk: it has `chunk_id` and `chunk_text`, or a text with one of
    the titles and another chunk field. One such field alone occurs in other JSON too."""
    if not isinstance(value, dict):
        return False
    if {"chunk_id", "chunk_text"} <= value.keys():
        return True
    metadata = value.get("metadata")
    names = set(value) | set(metadata if isinstance(metadata, dict) else ())
    has_text = any(field in value for field in TEXT_FIELDS)
    return has_text and bool(names & TITLE_FIELDS) and len(names & _CHUNK_FIELD_NAMES) > 1


def is_chunk_json_name(name: str) -> bool:
    """True for `*_chunk*.json`, in any folder and any case."""
    file_name = PurePosixPath(name.replace("\\", "/")).name
    return fnmatchcase(file_name.lower(), "*_chunk*.json")


def chunk_layout(name: str, opened: Opener) -> Layout | None:
    """How the file holds chunk records, recognised by the fields of its first ten; None for any
    other file.

    An object named `*_chunk*.json` counts as a record whatever its fields are, so that a broken one
    fails with the name of the field. Raises OSError.
    """
    is_named = is_chunk_json_name(name)
    has_lines = name.lower().endswith(LINE_SUFFIXES)
    with opened() as file:
        head = file.read(_FIRST_BYTES)
        start = head.removeprefix(_UTF8_BOM).lstrip()[:1]
        if start not in {b"{", b"["} and not is_named and not has_lines:
            return None
        head += file.read(MAX_RECORD_BYTES - len(head))
        is_whole = not file.read(1)
    head = head.removeprefix(_UTF8_BOM)
    otherwise: Layout | None = "object" if is_named and start != b"[" else None
    if not _CHUNK_FIELD_PATTERN.search(head):
        return otherwise
    if start == b"[":
        # The complete elements at the beginning of an array.
        with suppress(ParseError):
            for span in islice(_array_elements([head]), _SAMPLED_RECORDS):
                if is_chunk_record(_load_json(head[span.offset : span.offset + span.size])):
                    return "array"
    if start == b"{" and is_whole and not has_lines:
        value = _load_json(head)
        if value is not None:
            return "object" if is_chunk_record(value) else otherwise
    lines = head.split(b"\n", _SAMPLED_RECORDS)[:_SAMPLED_RECORDS]
    return "lines" if any(is_chunk_record(_load_json(line)) for line in lines) else otherwise


def record_spans(opened: Opener, layout: Layout) -> Iterator[RecordSpan]:
    """Extent of each record, in order. Raises OSError, and ParseError, after the last complete
    record, for an array that is truncated or followed by something else."""
    with opened() as file:
        if layout == "object":
            yield RecordSpan(1, 0, file.seek(0, 2))
        elif layout == "array":
            yield from _array_elements(iter(lambda: file.read(_BLOCK), b""))
        else:  # all lines that are not blank
            offset = 0
            for number in count(1):
                line = file.readline(MAX_RECORD_BYTES)
                if not line:
                    return
                size, rest = len(line), line
                while rest and not rest.endswith(b"\n"):  # too long for memory
                    rest = file.readline(MAX_RECORD_BYTES)
                    size += len(rest)
                mark = len(_UTF8_BOM) if not offset and line.startswith(_UTF8_BOM) else 0
                if size > len(line) or line.strip():
                    yield RecordSpan(number, offset + mark, size - mark)
                offset += size


def read_record(opened: Opener, span: RecordSpan) -> bytes:
    """The bytes of one record. Raises OSError."""
    with opened() as file:
        file.seek(span.offset)
        return file.read(span.size)


def record_name(name: str, span: RecordSpan, layout: Layout) -> str:
    """The name of a record in error messages: `chunks.jsonl:12`, or the file's own name."""
    return name if layout == "object" else f"{name}:{span.number}"


def _load_json(data: bytes) -> Any:
    try:
        return json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return None


def _array_elements(blocks: Iterable[bytes]) -> Iterator[RecordSpan]:
    """The elements of a JSON array, found by brackets, commas and quotes only; their contents are
    not parsed."""
    number = depth = start = base = skipped = 0
    in_string = is_closed = False
    for block in blocks:
        at, skipped = skipped, 0
        while not is_closed and (
            found := (_INSIDE_STRING if in_string else _OUTSIDE_STRING).search(block, at)
        ):
            sign, at = found[0], found.end()
            if sign == b"\\":
                at += 1
            elif sign == b'"':
                in_string = not in_string
            elif sign in b"[{":
                depth += 1
                start = base + at if depth == 1 else start
            elif sign != b",":
                depth -= 1
            is_closed = depth == 0
            if is_closed or (sign == b"," and depth == 1):
                number += 1
                yield RecordSpan(number, start, base + at - 1 - start)
                start = base + at
        if is_closed and block[at:].strip():
            raise ParseError(
                "malformed",
                f"Text follows the array, after record {number}. Write one array per file.",
            )
        skipped = 0 if is_closed else max(at - len(block), 0)
        base += len(block)
    if not is_closed:
        raise ParseError(
            "truncated",
            f"The array ends too early, in record {number + 1}. Write the file again.",
        )


#: The largest integer of PostgreSQL.
MAX_INTEGER = 2**31 - 1


def load_object(data: bytes) -> dict[str, Any]:
    """The JSON object of a file or record in UTF-8, with normalised strings."""
    if not data.strip():
        raise ParseError("empty", "The file is empty. Write the chunk again.")
    try:
        text = data.decode("utf-8-sig")
        value = json.loads(text, parse_constant=refuse_constant)
    except UnicodeDecodeError as error:
        raise ParseError(
            "malformed", f"Byte {error.start} is not UTF-8. Save the file as UTF-8."
        ) from error
    except json.JSONDecodeError as error:
        at_end = error.pos >= len(error.doc.rstrip())
        raise ParseError(
            "truncated" if at_end else "malformed",
            f"Not valid JSON: {error.msg} (line {error.lineno}, column {error.colno})."
            " Write the file again.",
        ) from error
    except (ValueError, RecursionError) as error:
        raise ParseError("malformed", f"Not usable JSON: {error}. Write the file again.") from error
    try:
        value = json_safe(value)
    except MetadataTooLargeError as error:
        raise ParseError(
            "malformed", "The JSON is nested too deeply or too large. Write one chunk per record."
        ) from error
    if not isinstance(value, dict):
        raise ParseError("malformed", "The JSON is not an object. Write each chunk as an object.")
    return value


class JsonFields:
    """A JSON object read field by field; `path` leads to it from the file's root."""

    def __init__(self, values: dict[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path

    def text(self, key: str, *, cure: str) -> str:
        value = self.optional_text(key).strip()
        if not value:
            raise ParseError("malformed", f"{self._path}{key} is missing or empty. {cure}")
        return value

    def optional_text(self, key: str) -> str:
        value = self.values.get(key)
        if value is not None and not isinstance(value, str):
            raise ParseError(
                "malformed", f"{self._path}{key} must be a string, not {_type_name(value)}."
            )
        return value or ""

    def optional_positive(self, key: str, *, most: int, cure: str) -> int | None:
        value = self.values.get(key)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            raise ParseError(
                "malformed",
                f"{self._path}{key} must be a whole number above 0, not {_type_name(value)}.",
            )
        if value <= 0:
            raise ParseError("malformed", f"{self._path}{key} must be above 0, not {value}. {cure}")
        if value > most:
            raise ParseError(
                "malformed", f"{self._path}{key} is more than {most:,}, the record's bytes. {cure}"
            )
        return value

    def mapping(self, key: str) -> "JsonFields":
        value = self.values.get(key)
        if value is not None and not isinstance(value, dict):
            raise ParseError(
                "malformed", f"{self._path}{key} must be an object, not {_type_name(value)}."
            )
        return JsonFields(value or {}, f"{self._path}{key}.")

    def texts(self, key: str) -> list[str]:
        value = self.values.get(key)
        if value is None or isinstance(value, str):
            return [value] if value else []
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise ParseError(
                "malformed",
                f"{self._path}{key} must be a list of strings, not {_type_name(value)}.",
            )
        return value


def _type_name(value: object) -> str:
    names = {bool: "true or false", int: "a number", float: "a fraction", str: "a string"}
    return names.get(type(value), "a mixed list" if isinstance(value, list) else "an object")


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


def parse_chunk_file(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """A file of chunk records, all of one document."""
    opened = partial(BytesIO, data)
    layout = chunk_layout(name, opened) or "object"
    return assemble(
        [
            parse_chunk_json(
                read_record(opened, span),
                name=record_name(name, span, layout),
            )
            for span in record_spans(opened, layout)
        ]
    )


def parse_chunk_json(data: bytes, *, name: str) -> ChunkRecord:
    """Parse one record; `ParseError` names the invalid field and what it must be.

    The titles, `summary`, `token_count` and the ids are looked up at the top, then in `metadata`.
    Missing ids are made from `name`: of a file, or of a record in it, `chunks.json:12`.
    """
    record = JsonFields(load_object(data))
    metadata = record.mapping("metadata")

    def holder(field: str) -> JsonFields:
        return metadata if record.values.get(field) in (None, "") else record

    chunk_id, source, number = _record_ids(
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
    text = record.text(text_field, cure="Give the text of the chunk.")
    if len(text) < MIN_CHARACTERS:
        raise ParseError(
            "malformed",
            f"{text_field} has fewer than {MIN_CHARACTERS} characters. Join it with its neighbor.",
        )
    original = record.optional_text("original_text").strip() or text
    chunk = ParsedChunk(
        key=chunk_id,
        text=original.removeprefix(prefix).strip() or original,
        context=prefix or " > ".join(path),
        heading_path=path,
        summary=holder("summary").optional_text("summary"),
        # No token is shorter than a byte, and nothing but the record can have been counted.
        token_count=holder("token_count").optional_positive(
            "token_count", most=len(data), cure="Count the tokens of the text, or leave it out."
        ),
        page=page,
        metadata=_remaining_metadata(record, metadata, text_field=text_field, page=page),
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
    """One document from JSON Lines of records."""
    lines = enumerate(data.splitlines(), start=1)
    return assemble([parse_chunk_json(line, name=f"{name}:{n}") for n, line in lines])


def assemble(records: Sequence[ChunkRecord]) -> ParsedDocument:
    """One document from all records of one `source_document`, in the order of their numbers."""
    ordered = sorted(records, key=lambda record: (record.ordinal, record.chunk_id))
    if not ordered:
        raise ParseError("empty", "There is no chunk. Give at least one chunk file.")
    first, source = ordered[0], ordered[0].source_document
    for record in ordered:
        if record.source_document != source:
            raise ParseError(
                "malformed",
                f"{first.chunk_id[:200]} is of {source[:200]} but {record.chunk_id[:200]} is of"
                f" {record.source_document[:200]}. Give the chunks of one source_document.",
            )
    seen: dict[str, ChunkRecord] = {}
    for record in ordered:
        twin = seen.setdefault(record.chunk_id, record)
        if twin is not record:
            raise ParseError(
                "malformed",
                f"The id {record.chunk_id[:200]} is in {twin.name} and in {record.name}. "
                "Give each chunk its own id.",
            )
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


def _record_ids(chunk_id: str, source: str, name: str) -> tuple[str, str, int]:
    """`chunk_id` and `source_document`, made from `name` where they are empty, and the record's
    number in its file, or 0."""
    if len(chunk_id) > MAX_ID_CHARACTERS:
        raise ParseError(
            "malformed",
            f"chunk_id has {len(chunk_id):,} characters; {MAX_ID_CHARACTERS:,} are allowed."
            " Shorten it.",
        )
    file_name = PurePosixPath(name.replace("\\", "/")).name
    numbered = _NUMBERED_NAME.fullmatch(file_name)
    file_name, number = (numbered[1], int(numbered[2])) if numbered else (file_name, 0)
    stem = PurePosixPath(file_name).stem if is_chunk_json_name(file_name) else file_name
    if not source:
        whole = chunk_id if _NUMBERED_ID.search(chunk_id) else stem
        source = _NUMBERED_ID.sub("", whole) or whole
    return chunk_id or (f"{stem}_chunk_{number:03}" if number else stem), source, number


def _remaining_metadata(
    record: JsonFields, metadata: JsonFields, *, text_field: str, page: int | None
) -> dict[str, Any]:
    """All fields of the record without a place of their own."""
    known = FLAT_FIELDS if page is None else FLAT_FIELDS | {"page"}
    own = known | {text_field, "original_text", "contextual_prefix", "metadata"}
    outer = {key: value for key, value in record.values.items() if key not in own}
    return outer | {key: value for key, value in metadata.values.items() if key not in known}
