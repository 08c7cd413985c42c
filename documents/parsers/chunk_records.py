"""Chunk records in a file: one JSON object, an array, or JSON Lines. Told from other JSON by their
fields, and located by offset, so that each is read on its own."""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import count, islice
from pathlib import PurePosixPath
from typing import IO, Any, Literal

from documents.parsers.base import ParseError

Layout = Literal["object", "array", "lines"]
#: Opens the file at its beginning.
Opener = Callable[[], AbstractContextManager[IO[bytes]]]

#: Of one record: the longest chunk, twice, in any encoding of JSON.
MAX_RECORD_BYTES = 8 * 1024 * 1024
LINE_SUFFIXES = (".jsonl", ".ndjson")

#: Where a record's text may be; the first that is there.
TEXT_FIELDS = ("chunk_text", "text", "content", "page_content")
TITLE_FIELDS = frozenset({"chapter_title", "section_title", "subsection_title"})
#: At the top of a record, or under its `metadata`.
FLAT_FIELDS = TITLE_FIELDS | {"chunk_id", "source_document", "summary", "token_count"}
_SIGNS = FLAT_FIELDS | {"chunk_text", "contextual_prefix"}

_SAMPLE = 10
_FIRST_BYTES = 4096
_BLOCK = 64 * 1024
_MARK = b"\xef\xbb\xbf"
_SIGN_NAMES = re.compile(b'"(?:chunk_id|' + "|".join(sorted(TITLE_FIELDS)).encode() + b')"')
_OUTSIDE_STRING = re.compile(rb'["\[\]{},]')
_INSIDE_STRING = re.compile(rb'["\\]')


@dataclass(frozen=True, slots=True)
class RecordSpan:
    """`size` bytes of the file from `offset` on; records (or lines) count from 1."""

    number: int
    offset: int
    size: int


def is_chunk_record(value: Any) -> bool:
    """Whether a JSON value is a chunk: `chunk_id` and `chunk_text`, or a text with one of the
    titles and a further field of chunks. One such field alone occurs in other JSON, too."""
    if not isinstance(value, dict):
        return False
    if {"chunk_id", "chunk_text"} <= value.keys():
        return True
    metadata = value.get("metadata")
    names = set(value) | set(metadata if isinstance(metadata, dict) else ())
    has_text = any(field in value for field in TEXT_FIELDS)
    return has_text and bool(names & TITLE_FIELDS) and len(names & _SIGNS) > 1


def is_chunk_json_name(name: str) -> bool:
    """True for `*_chunk*.json`, in any folder and any case."""
    file_name = PurePosixPath(name.replace("\\", "/")).name
    return fnmatchcase(file_name.lower(), "*_chunk*.json")


def chunk_layout(name: str, opened: Opener) -> Layout | None:
    """How the file holds chunk records, known by the fields of its first ten; None for any other
    file.

    An object named `*_chunk*.json` is taken for a record whatever its fields are, so that a broken
    one fails with the name of the field. Raises OSError.
    """
    is_named = is_chunk_json_name(name)
    has_lines = name.lower().endswith(LINE_SUFFIXES)
    with opened() as file:
        head = file.read(_FIRST_BYTES)
        start = head.removeprefix(_MARK).lstrip()[:1]
        if start not in {b"{", b"["} and not is_named and not has_lines:
            return None
        head += file.read(MAX_RECORD_BYTES - len(head))
        is_whole = not file.read(1)
    head = head.removeprefix(_MARK)
    otherwise: Layout | None = "object" if is_named and start != b"[" else None
    if not _SIGN_NAMES.search(head):
        return otherwise
    if start == b"[" and any(_is_chunk(head, span) for span in islice(_sampled(head), _SAMPLE)):
        return "array"
    if start == b"{" and is_whole and not has_lines:
        value = _loaded(head)
        if value is not None:
            return "object" if is_chunk_record(value) else otherwise
    lines = head.split(b"\n", _SAMPLE)[:_SAMPLE]
    return "lines" if any(is_chunk_record(_loaded(line)) for line in lines) else otherwise


def record_spans(opened: Opener, layout: Layout) -> Iterator[RecordSpan]:
    """Where each record lies, in order. Raises OSError, and ParseError for an array that is cut
    off or followed by something else, behind its last whole record."""
    with opened() as file:
        if layout == "object":
            yield RecordSpan(1, 0, file.seek(0, 2))
        elif layout == "array":
            yield from _elements(iter(lambda: file.read(_BLOCK), b""))
        else:
            yield from _lines(file)


def read_record(opened: Opener, span: RecordSpan) -> bytes:
    """The bytes of one record. Raises OSError."""
    with opened() as file:
        file.seek(span.offset)
        return file.read(span.size)


def record_name(name: str, span: RecordSpan, layout: Layout) -> str:
    """What a record is called where it is broken: `chunks.jsonl:12`, or the file's own name."""
    return name if layout == "object" else f"{name}:{span.number}"


def _loaded(data: bytes) -> Any:
    try:
        return json.loads(data, strict=False)
    except (ValueError, RecursionError):
        return None


def _is_chunk(head: bytes, span: RecordSpan) -> bool:
    return is_chunk_record(_loaded(head[span.offset : span.offset + span.size]))


def _sampled(head: bytes) -> Iterator[RecordSpan]:
    """The whole elements in the beginning of an array."""
    try:
        yield from _elements([head])
    except ParseError:
        return


def _elements(blocks: Iterable[bytes]) -> Iterator[RecordSpan]:
    """The elements of a JSON array by its brackets, commas and quotes alone: what is between them
    is not read."""
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
                f"Something follows the array, behind record {number}. Write one array to a file.",
            )
        skipped = 0 if is_closed else max(at - len(block), 0)
        base += len(block)
    if not is_closed:
        raise ParseError(
            "truncated",
            f"The array ends too early, in record {number + 1}. Write the file again.",
        )


def _lines(file: IO[bytes]) -> Iterator[RecordSpan]:
    """All lines that are not blank."""
    offset = 0
    for number in count(1):
        line = file.readline(MAX_RECORD_BYTES)
        if not line:
            return
        size = len(line) + _rest_of_line(file, line)
        mark = len(_MARK) if not offset and line.startswith(_MARK) else 0
        if size > len(line) or line.strip():
            yield RecordSpan(number, offset + mark, size - mark)
        offset += size


def _rest_of_line(file: IO[bytes], line: bytes) -> int:
    """Bytes of a line that is too long to be held: passed over, whatever they are."""
    size = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_RECORD_BYTES)
        size += len(line)
    return size
