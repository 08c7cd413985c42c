"""Messages between the site and its parser process: a prefix with two lengths, a JSON header, a
body of bytes. Never pickles."""

import json
import struct
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, get_args

from reading.parsers import Heading, Page, ParsedChunk, ParsedDocument, chunk_offsets
from reading.parsers.base import ContainerPart, ReadPage, Rendering, UnpackedContainer
from reading.parsers.normalise import normalise_text, refuse_constant

#: Whether the process ends after this message, bytes of the header, bytes of the body.
PREFIX = struct.Struct("<?QQ")
#: Bytes of an answer's header; ten thousand headings take about 1 MB.
MAX_HEADER_BYTES = 64 * 1024 * 1024

MessageHeader = dict[str, Any]
_CHUNK_FIELDS = [each.name for each in fields(ParsedChunk) if each.name != "text"]


@dataclass(frozen=True, slots=True)
class ParseRequest:
    """A file for the parser process: its bytes, or the path to read them from.

    `task` is a function of `reading.sandbox.tasks`; without one the file is parsed. `options` are
    keyword arguments of that function, or of the parser, as JSON values.
    """

    name: str
    data: bytes | None = None
    path: Path | None = None
    task: str = ""
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of bytes to send."""
        return len(self.data or b"")


def encode_header(header: MessageHeader) -> bytes:
    """The header as JSON bytes. Raises TypeError for values that are not JSON."""
    return json.dumps(header).encode()


def frame_message(header: bytes, body: bytes, *, is_last: bool = False) -> tuple[bytes, bytes]:
    """A message as two byte strings to send one after the other."""
    return PREFIX.pack(is_last, len(header), len(body)) + header, body


def decode_header(encoded: bytes | bytearray) -> MessageHeader:
    """A header from its bytes. Raises TypeError or ValueError."""
    header = _dict(json.loads(encoded, parse_constant=refuse_constant))
    # PostgreSQL stores neither, and would refuse the neighbours with it.
    if b"\\u0000" in encoded or b"\\ud" in encoded:
        return _dict(_clean_json(header))
    return header


def document_fields(document: ParsedDocument) -> MessageHeader:
    """Everything of a document except its text, as JSON values."""
    return {
        "media_type": document.media_type,
        "title": document.title,
        "rendering": document.rendering,
        "headings": [(each.offset, each.level, each.title) for each in document.headings],
        "pages": [(page.offset, page.number, page.label) for page in document.pages],
        "scans": document.scans,
        "metadata": document.metadata,
        "language": document.language,
        "chunks": [
            {name: getattr(chunk, name) for name in _CHUNK_FIELDS} | {"start": start, "end": end}
            for chunk, (start, end) in zip(document.chunks, chunk_offsets(document), strict=True)
        ],
    }


def document_from_fields(header: MessageHeader, text: str) -> ParsedDocument:
    """Reverse of `document_fields`. Raises LookupError, TypeError or ValueError for invalid
    fields."""
    headings = tuple(
        Heading(_int(offset), _int(level), _str(title))
        for offset, level, title in header["headings"]
    )
    pages = tuple(
        Page(_int(offset), _int(number), _str(label)) for offset, number, label in header["pages"]
    )
    for offsets in ([each.offset for each in headings], [page.offset for page in pages]):
        if offsets and not (
            offsets[0] >= 0 and offsets == sorted(offsets) and offsets[-1] <= len(text)
        ):
            raise ValueError("offsets outside the text")
    if header["rendering"] not in get_args(Rendering) or "\0" in text:
        raise ValueError("not the text of a document")
    return ParsedDocument(
        text=text,
        media_type=_str(header["media_type"]),
        title=_str(header["title"]),
        rendering=header["rendering"],
        headings=headings,
        pages=pages,
        scans=tuple(map(_int, header["scans"])),
        metadata=_dict(header["metadata"]),
        language=_str(header["language"]),
        chunks=tuple(
            ParsedChunk(
                key=_str(chunk["key"]),
                text=text[_int(chunk["start"]) : _int(chunk["end"])],
                context=_str(chunk["context"]),
                heading_path=tuple(map(_str, chunk["heading_path"])),
                summary=_str(chunk["summary"]),
                token_count=None if chunk["token_count"] is None else _int(chunk["token_count"]),
                page=None if chunk["page"] is None else _int(chunk["page"]),
                metadata=_dict(chunk["metadata"]),
            )
            for chunk in header["chunks"]
        ),
    )


def container_fields(container: UnpackedContainer) -> MessageHeader:
    """Everything of an unpacked container except the bytes of its parts, as JSON values."""
    return {
        "message_id": container.message_id,
        "about": container.about,
        "parts": [
            (part.path, part.size, part.problem, None if part.data is None else len(part.data))
            for part in container.parts
        ],
    }


def container_from_fields(header: MessageHeader, body: bytes | bytearray) -> UnpackedContainer:
    """Reverse of `container_fields`; `body` is the unpacked parts one after the other. Raises
    LookupError, TypeError or ValueError for invalid fields."""
    parts: list[ContainerPart] = []
    start = 0
    for path, size, problem, length in header["parts"]:
        data = None
        if length is not None:
            if _int(length) < 0 or start + length > len(body):
                raise ValueError("parts outside the answer")
            data = bytes(body[start : start + length])
            start += length
        parts.append(ContainerPart(_str(path), _int(size), data, _str(problem)))
    return UnpackedContainer(
        parts=tuple(parts), about=_dict(header["about"]), message_id=_str(header["message_id"])
    )


def page_fields(page: ReadPage) -> MessageHeader:
    """Everything of a page that OCR read except its text, as JSON values."""
    return {
        "lines": page.lines,
        "confidence": page.confidence,
        "rotation": page.rotation,
        "engine": page.engine,
    }


def page_from_fields(header: MessageHeader, body: bytes | bytearray) -> ReadPage:
    """Reverse of `page_fields`; `body` is the text. Raises LookupError, TypeError or ValueError for
    invalid fields."""
    lines = [
        {
            "box": _box(line["box"]),
            "confidence": _fraction(line["confidence"]),
            "words": [[_str(text), *_box(box)] for text, *box in line["words"]],
        }
        for line in header["lines"]
    ]
    if _int(header["rotation"]) not in {0, 90, 180, 270}:
        raise ValueError("not how a page may be turned")
    return ReadPage(
        text=normalise_text(str(body, "utf-8")),
        lines=lines,
        confidence=_fraction(header["confidence"]),
        rotation=header["rotation"],
        engine=_str(header["engine"])[:40],
    )


def _box(values: list[object]) -> list[float]:
    if len(values) != 4:
        raise ValueError("a box has four numbers")
    return [_fraction(value) for value in values]


def _fraction(value: object) -> float:
    if not isinstance(value, int | float) or not 0 <= value <= 1:
        raise ValueError(f"{value!r} is not between 0 and 1")
    return float(value)


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


def _clean_json(value: Any) -> Any:
    match value:
        case str():
            return normalise_text(value)
        case list():
            return [_clean_json(item) for item in value]
        case dict():
            return {normalise_text(key): _clean_json(item) for key, item in value.items()}
        case _:
            return value
