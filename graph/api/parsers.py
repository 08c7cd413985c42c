"""Bodies with many nodes and edges, for which the usual bounds are too narrow."""

from collections.abc import Mapping
from typing import IO, Any

from rest_framework import parsers

from common import bounded_json
from common.parsers import BodyTooLarge, JSONParser
from graph.lines import Lines

MAX_BYTES = 32 * 1024 * 1024
MAX_ITEMS = 50_000
JSON_LINES = "application/x-ndjson"
TOO_LARGE = (
    f"This body may have {MAX_BYTES:,} bytes, and {MAX_ITEMS:,} nodes and edges. Send fewer at"
    " once."
)


class BulkJSONParser(JSONParser):
    """JSON of up to 32 MB. Its items are checked when they are written."""

    max_bytes = MAX_BYTES
    too_large = TOO_LARGE

    def value(self, text: str) -> Any:
        return bounded_json.load(text)


class JSONLinesParser(parsers.BaseParser):
    """The same by lines, which are read when they are written."""

    media_type = JSON_LINES

    def parse(
        self,
        stream: IO[bytes],
        media_type: str | None = None,
        parser_context: Mapping[str, Any] | None = None,
    ) -> Any:
        body = stream.read(MAX_BYTES + 1)
        lines = body.split(b"\n")
        if len(body) > MAX_BYTES or sum(map(bool, lines)) > MAX_ITEMS:
            raise BodyTooLarge(TOO_LARGE)
        JSONParser().note(body, parser_context)
        return Lines(lambda: lines)
