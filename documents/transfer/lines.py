"""The lines of a file that may be an export."""

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from common import bounded_json
from common.errors import InvalidInput
from documents.models import Collection
from documents.transfer.fields import BrokenLine, Fields
from documents.transfer.format import FORMAT, MAX_LINE_BYTES, VERSION, Header


def lines_of(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Numbered lines; None for one that is too long, of which no more is read at a time."""
    number = 0
    try:
        while raw := file.readline(MAX_LINE_BYTES):
            number += 1
            if len(raw) < MAX_LINE_BYTES or raw.endswith(b"\n"):
                yield number, raw
                continue
            while (more := file.readline(MAX_LINE_BYTES)) and not more.endswith(b"\n"):
                pass
            yield number, None
    except (EOFError, OSError, zlib.error):
        return  # a compressed file that was cut off: no last line


def parse_line(raw: bytes | None) -> Fields:
    """The object in a line. Raises BrokenLine."""
    if raw is None:
        raise BrokenLine(f"it is longer than {MAX_LINE_BYTES:,} bytes")
    try:
        value = bounded_json.parse(raw.decode())
    except UnicodeDecodeError as error:
        raise BrokenLine("it is no UTF-8") from error
    except InvalidInput as error:
        place = f"at {error.field}: " if error.field else ""
        raise BrokenLine(f"{place}{str(error).removesuffix('.')}") from error
    if not isinstance(value, dict):
        raise BrokenLine("it is no JSON object")
    return Fields(value)


def read_header(first: tuple[int, bytes | None] | None) -> Header:
    """What the first line says. Raises InvalidInput for a file that is no export."""
    try:
        fields = parse_line(first[1] if first else b"")
        if fields.values.get("type") != FORMAT:
            raise BrokenLine("it is not the header of an export")
        version = fields.number("version", least=1)
        if version > VERSION:
            raise BrokenLine(
                f"the format's version is {version}, and this site reads {VERSION}: upgrade it"
            )
        collection, space = Fields(fields.mapping("collection")), Fields(fields.mapping("space"))
        return Header(
            slug=collection.text("slug", 63),
            name=collection.text("name", 200),
            description=collection.text("description", 10_000),
            language=collection.text("language", 20),
            chunker=collection.text("chunker", 20),
            chunker_options=collection.mapping("chunker_options"),
            graph=collection.optional_text("graph", 5, default=Collection.Graph.RULES),
            recipe_version=collection.number("recipe_version"),
            fallback_language=collection.text("fallback_language", 20),
            model_name=space.text("model", 200),
            dimensions=space.number("dimensions", least=1),
            metric=space.text("metric", 10),
            has_vectors=fields.flag("vectors"),
        )
    except BrokenLine as error:
        raise InvalidInput(
            f"This is no export of a collection. Line 1: {error}. `manage.py export` writes one."
        ) from error
