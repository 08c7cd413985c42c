"""How servers set the events of a stream apart: as server-sent events, or as lines of JSON."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import httpx2

LONGEST_LINE = 1024 * 1024  # bytes; a whole tool call stands in one


@dataclass(frozen=True, slots=True)
class Framing:
    """`kinds` are the media types that such a stream may have, `events` its events as text."""

    kinds: tuple[str, ...]
    events: Callable[[httpx2.Response], Iterator[str]]


def _server_sent(response: httpx2.Response) -> Iterator[str]:
    return (event.data for event in httpx2.EventSource(response))


def _lines(response: httpx2.Response) -> Iterator[str]:
    """The lines that are not blank. Raises httpx2.SSEError for one that is too long."""
    begun = bytearray()
    for chunk in response.iter_bytes():
        *ended, rest = chunk.split(b"\n")
        for line in ended:
            begun += line
            if text := begun.decode(errors="replace").strip():
                yield text
            begun.clear()
        begun += rest
        if len(begun) > LONGEST_LINE:
            raise httpx2.SSEError(f"a line of more than {LONGEST_LINE:,} bytes")
    if text := begun.decode(errors="replace").strip():
        yield text


SERVER_SENT = Framing(("text/event-stream",), _server_sent)
JSON_LINES = Framing(("application/x-ndjson", "application/json"), _lines)
