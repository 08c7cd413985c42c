"""A prepared document as bytes, for the way from one queue to the next."""

import json
import zlib
from collections.abc import Iterator
from dataclasses import fields
from itertools import chain
from typing import Any

from documents.ingestion.preparing import PreparedChunk, PreparedDocument

_CHUNK_FIELDS = tuple(field.name for field in fields(PreparedChunk))
_DOCUMENT_FIELDS = tuple(f.name for f in fields(PreparedDocument) if f.name != "chunks")
#: Of a packed document, unpacked at a time.
_PIECE = 64 * 1024


def pack(document: PreparedDocument) -> bytes:
    """Compressed form for the way from one queue to the next: a line of JSON for the document, then
    one a chunk, so that no second copy of all the text is needed."""
    compressor = zlib.compressobj(level=1)
    packed = bytearray()
    own = {name: getattr(document, name) for name in _DOCUMENT_FIELDS}
    for values in chain([own], map(_chunk_fields, document.chunks)):
        packed += compressor.compress(json.dumps(values).encode() + b"\n")
    packed += compressor.flush()
    return bytes(packed)


def unpack(payload: bytes) -> PreparedDocument:
    """Reverse of `pack`."""
    lines = _lines(payload)
    own = json.loads(next(lines))
    chunks = tuple(
        PreparedChunk(**{**values, "heading_path": tuple(values["heading_path"])})
        for values in map(json.loads, lines)
    )
    return PreparedDocument(chunks=chunks, **own)


def _chunk_fields(chunk: PreparedChunk) -> dict[str, Any]:
    return {name: getattr(chunk, name) for name in _CHUNK_FIELDS}


def _lines(payload: bytes) -> Iterator[bytes]:
    decompressor = zlib.decompressobj()
    rest = b""
    for start in range(0, len(payload), _PIECE):
        rest += decompressor.decompress(payload[start : start + _PIECE])
        *lines, rest = rest.split(b"\n")
        yield from lines
