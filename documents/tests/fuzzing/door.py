"""The way of a file into the site, up to where it would be embedded: what is promised of it."""

import math
from typing import Any

from documents.ingestion.preparation import PreparedDocument, Recipe, chunk_parsed, parse_content
from documents.ingestion.sources import content_from_bytes
from reading.parsers import ParseError
from reading.parsers.base import ErrorCode
from reading.sandbox.limits import ParserLimits
from reading.tests.factories_chunkers import CharacterCounter

#: What no file may be refused with: its parser broke down, or a small file cost too much.
BREAKDOWNS: frozenset[ErrorCode] = frozenset({"crashed", "too_slow", "too_much_memory"})
LIMITS = ParserLimits(seconds=60.0, max_bytes=20_000_000)
RECIPE = Recipe(
    chunker="auto",
    chunker_options={},
    space_id=1,
    model_name="none",
    language="",
    fallback_language="en",
)


def taken(
    name: str, data: bytes, *, limits: ParserLimits = LIMITS
) -> PreparedDocument | ParseError:
    """What becomes of the file. Raises AssertionError where something is that may not be."""
    try:
        prepared = chunk_parsed(
            parse_content(content_from_bytes(data), name=name, declared={}, limits=limits),
            name=name,
            recipe=RECIPE,
            counter=CharacterCounter(254),
            declared={},
            max_chunks=100_000,
        )
    except ParseError as error:
        check_failure(error)
        return error
    check_storable(prepared)
    return prepared


def check_failure(error: ParseError) -> None:
    """No breakdown, and told in words that end, and can be stored and shown."""
    message = error.message
    assert error.code not in BREAKDOWNS, f"{error.code}: {message}"
    assert message.strip().endswith((".", "?", ")")), message
    assert len(message) <= 2000
    _check_text(message)


def check_storable(document: PreparedDocument) -> None:
    """Everything of it fits into its column."""
    assert 0 < len(document.title) <= 500
    assert len(document.media_type) <= 100
    assert document.language == "" or document.language.isalpha()
    assert document.chunks
    _check_json(document.metadata)
    for text in (document.title, document.media_type, document.rendering):
        _check_text(text)
    for chunk in document.chunks:
        assert chunk.token_count >= 0
        assert chunk.page is None or 0 < chunk.page < 2**31
        assert 0 <= chunk.start <= chunk.end < 2**31
        assert chunk.token_count < 2**31
        assert len(chunk.key) <= 1024
        assert len(chunk.text) + len(chunk.context) <= 220_000
        _check_json(chunk.metadata)
        for text in (chunk.text, chunk.context, chunk.key, chunk.summary, *chunk.heading_path):
            _check_text(text)


def _check_json(value: Any) -> None:
    """`numeric` has 131,072 digits before the point, and Python writes 4,300: few are let in."""
    match value:
        case dict():
            for key, entry in value.items():
                _check_text(key)
                _check_json(entry)
        case list():
            for entry in value:
                _check_json(entry)
        case str():
            _check_text(value)
        case bool() | None:
            pass
        case int():
            assert value.bit_length() <= 1024
        case float():
            assert math.isfinite(value)
        case _:
            raise AssertionError(f"{type(value)} in metadata")


def _check_text(text: str) -> None:
    assert "\0" not in text
    text.encode()
