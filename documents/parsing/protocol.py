"""What the site and its parser process say to each other: JSON and bytes, never pickles.

A message is a prefix with two lengths, a header of JSON, and a body of bytes.
"""

import json
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn, get_args

from documents.parsers import Heading, Page, ParsedChunk, ParsedDocument, chunk_offsets
from documents.parsers.base import Rendering
from documents.parsers.normalise import normalise_text

#: Whether the process ends after this message, bytes of the header, bytes of the body.
PREFIX = struct.Struct("<?QQ")
#: Of an answer: ten thousand headings have some 1 MB.
MAX_HEADER_BYTES = 64 * 1024 * 1024

Header = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Request:
    """A file to parse: its bytes, or the path that they are read from."""

    name: str
    data: bytes | None = None
    path: Path | None = None

    @property
    def size(self) -> int:
        """Bytes that must be sent."""
        return len(self.data or b"")


def encoded(header: Header) -> bytes:
    """A header's bytes. Raises TypeError for what is no JSON."""
    return json.dumps(header).encode()


def framed(header: bytes, body: bytes, *, is_last: bool = False) -> tuple[bytes, bytes]:
    """A message in two parts, to be sent one after the other."""
    return PREFIX.pack(is_last, len(header), len(body)) + header, body


def decoded(encoded: bytes | bytearray) -> Header:
    """A header from its bytes. Raises TypeError or ValueError."""
    header = _dict(json.loads(encoded, parse_constant=_refuse_constant))
    # PostgreSQL stores neither, and would refuse the neighbours with it.
    if b"\\u0000" in encoded or b"\\ud" in encoded:
        return _dict(_clean(header))
    return header


def document_fields(document: ParsedDocument) -> Header:
    """All of a document but its text, as JSON can hold it."""
    return {
        "media_type": document.media_type,
        "title": document.title,
        "rendering": document.rendering,
        "headings": [(each.offset, each.level, each.title) for each in document.headings],
        "pages": [(page.offset, page.number) for page in document.pages],
        "metadata": document.metadata,
        "language": document.language,
        "chunks": [
            {
                "start": start,
                "end": end,
                "key": chunk.key,
                "context": chunk.context,
                "heading_path": chunk.heading_path,
                "summary": chunk.summary,
                "token_count": chunk.token_count,
                "page": chunk.page,
                "metadata": chunk.metadata,
            }
            for chunk, (start, end) in zip(document.chunks, chunk_offsets(document), strict=True)
        ],
    }


def document_of(fields: Header, text: str) -> ParsedDocument:
    """Reverse of `document_fields`. Raises LookupError, TypeError or ValueError for anything that
    no parser says."""
    headings = tuple(
        Heading(_int(offset), _int(level), _str(title))
        for offset, level, title in fields["headings"]
    )
    pages = tuple(Page(_int(offset), _int(number)) for offset, number in fields["pages"])
    for offsets in ([each.offset for each in headings], [page.offset for page in pages]):
        _check_offsets(offsets, len(text))
    if fields["rendering"] not in get_args(Rendering) or "\0" in text:
        raise ValueError("not the text of a document")
    return ParsedDocument(
        text=text,
        media_type=_str(fields["media_type"]),
        title=_str(fields["title"]),
        rendering=fields["rendering"],
        headings=headings,
        pages=pages,
        metadata=_dict(fields["metadata"]),
        language=_str(fields["language"]),
        chunks=tuple(_chunk(chunk, text) for chunk in fields["chunks"]),
    )


def _chunk(fields: Header, text: str) -> ParsedChunk:
    numbers = (fields["token_count"], fields["page"])
    token_count, page = (number if number is None else _int(number) for number in numbers)
    return ParsedChunk(
        key=_str(fields["key"]),
        text=text[_int(fields["start"]) : _int(fields["end"])],
        context=_str(fields["context"]),
        heading_path=tuple(map(_str, fields["heading_path"])),
        summary=_str(fields["summary"]),
        token_count=token_count,
        page=page,
        metadata=_dict(fields["metadata"]),
    )


def _check_offsets(offsets: list[int], length: int) -> None:
    if offsets and not (offsets[0] >= 0 and offsets == sorted(offsets) and offsets[-1] <= length):
        raise ValueError("offsets outside the text")


def _int(value: object) -> int:
    if type(value) is not int:
        raise TypeError(f"{value!r} is no whole number")
    return value


def _str(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{value!r} is no string")
    return value


def _dict(value: object) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise TypeError(f"{value!r} is no object")
    return value


def _clean(value: Any) -> Any:
    match value:
        case str():
            return normalise_text(value)
        case list():
            return [_clean(item) for item in value]
        case dict():
            return {normalise_text(key): _clean(item) for key, item in value.items()}
        case _:
            return value


def _refuse_constant(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a number")
