"""Files to text with structure. Pure Python: no Django, no Celery, no model.

Read `base` (what a parser takes and returns) and `registry` (which parser reads which type); the
other modules are a format each.
"""

from reading.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    Page,
    ParsedChunk,
    ParsedDocument,
    ParseError,
    Parser,
)
from reading.parsers.chunk_json import (
    CHUNK_JSON,
    ChunkRecord,
    assemble,
    chunk_offsets,
    is_chunk_json_name,
    parse_chunk_json,
)
from reading.parsers.normalise import content_sha256, decode_text, normalise_text
from reading.parsers.registry import FORMATS, detect_media_type, parse

__all__ = [
    "CHUNK_JSON",
    "DEFAULT_LIMITS",
    "FORMATS",
    "ChunkRecord",
    "Heading",
    "Limits",
    "Page",
    "ParseError",
    "ParsedChunk",
    "ParsedDocument",
    "Parser",
    "assemble",
    "chunk_offsets",
    "content_sha256",
    "decode_text",
    "detect_media_type",
    "is_chunk_json_name",
    "normalise_text",
    "parse",
    "parse_chunk_json",
]
