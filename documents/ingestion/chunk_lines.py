"""JSON Lines whose every line is a chunk: found, and read line by line where they lie."""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from itertools import count
from typing import IO, Any

SUFFIXES = (".jsonl", ".ndjson")
MAX_LINE_BYTES = 8 * 1024 * 1024

#: Opens the file at its beginning.
Opener = Callable[[], AbstractContextManager[IO[bytes]]]

_LOOKED_AT = 10
_NUMBERED = re.compile(r"\.(?:jsonl|ndjson):\d+\Z", re.I)
_MARK = b"\xef\xbb\xbf"


@dataclass(frozen=True, slots=True)
class ChunkLine:
    """`size` bytes of the file from `offset` on; lines count from 1."""

    number: int
    offset: int
    size: int


def holds_chunks(name: str, opened: Opener) -> bool:
    """Whether one of the first ten lines is a chunk record; any other JSON Lines are not.

    A file that cannot be opened holds none: whoever reads it says why.
    """
    if not name.lower().endswith(SUFFIXES):
        return False
    try:
        with opened() as file:
            lines = (file.readline(MAX_LINE_BYTES) for _ in range(_LOOKED_AT))
            return any(map(_is_chunk, lines))
    except OSError:
        return False


def lines_of(opened: Opener) -> Iterator[ChunkLine]:
    """All lines that are not blank. Raises OSError."""
    with opened() as file:
        offset = 0
        for number in count(1):
            line = file.readline(MAX_LINE_BYTES)
            if not line:
                return
            size = len(line) + _rest_of_line(file, line)
            mark = len(_MARK) if not offset and line.startswith(_MARK) else 0
            if size > len(line) or line.strip():
                yield ChunkLine(number, offset + mark, size - mark)
            offset += size


def _rest_of_line(file: IO[bytes], line: bytes) -> int:
    """Bytes of a line that is too long to be held: passed over, whatever they are."""
    size = 0
    while line and not line.endswith(b"\n"):
        line = file.readline(MAX_LINE_BYTES)
        size += len(line)
    return size


def read_line(opened: Opener, line: ChunkLine) -> bytes:
    """The bytes of one line. Raises OSError."""
    with opened() as file:
        file.seek(line.offset)
        return file.read(line.size)


def line_name(name: str, line: ChunkLine) -> str:
    """What a line is called where it is broken: `chunks.jsonl:12`."""
    return f"{name}:{line.number}"


def is_line_name(name: str) -> bool:
    """Whether it is one that `line_name` made."""
    return _NUMBERED.search(name) is not None


def _is_chunk(line: bytes) -> bool:
    try:
        value: Any = json.loads(line.removeprefix(_MARK))
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and {"chunk_id", "chunk_text"} <= value.keys()
