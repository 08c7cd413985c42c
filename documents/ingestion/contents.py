"""A source's content, read no further than the limit: in memory if small, else by its path."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import BinaryIO

from django.db.models.fields.files import FieldFile

from documents.ingestion.sources import Source
from documents.ingestion.walking import NO_FILE
from documents.parsers import ParseError

#: Larger files are hashed piece by piece, and read by the parser process alone.
MAX_IN_MEMORY = 1024 * 1024
_PIECE = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """What a document is made of: its bytes, or the path of the file that has them.

    `is_given_text`: a program gave it as a string.
    """

    size: int
    sha256: str
    data: bytes | None = None
    path: Path | None = None
    is_given_text: bool = False

    def open(self) -> BinaryIO:
        """The bytes, from their beginning, as a file."""
        if self.path is not None:
            return self.path.open("rb")
        return BytesIO(self.data or b"")


def content_of(source: Source, *, max_bytes: int) -> Content:
    """The source's content, hashed. Raises ParseError where it cannot be read or has too much."""
    try:
        if source.path is not None:
            return content_of_file(source.path, name=source.name, max_bytes=max_bytes)
        refuse_above(max_bytes, source.size, name=source.name)
        data = source.read()
    except OSError as error:
        raise ParseError(
            "unreadable",
            f"{source.name} cannot be read: {error.strerror}. Check its permissions.",
        ) from error
    refuse_above(max_bytes, len(data), name=source.name)
    return content_of_bytes(data, is_given_text=source.is_given_text)


def content_of_bytes(data: bytes, *, is_given_text: bool = False) -> Content:
    """Of bytes that are in memory already."""
    digest = hashlib.sha256(data).hexdigest()
    return Content(size=len(data), sha256=digest, data=data, is_given_text=is_given_text)


def content_of_file(path: Path, *, name: str, max_bytes: int) -> Content:
    """Of a file, of which no more than `max_bytes` are read, even if it grows meanwhile.

    Raises OSError, and ParseError for what is too large or no file at all.
    """
    with open_file(path, name=name) as file:
        refuse_above(max_bytes, os.fstat(file.fileno()).st_size, name=name)
        first = file.read(min(max_bytes, MAX_IN_MEMORY) + 1)
        if len(first) <= min(max_bytes, MAX_IN_MEMORY):
            return content_of_bytes(first)
        digest, size = hashlib.sha256(first), len(first)
        for piece in _pieces(file.read):
            digest.update(piece)
            size += len(piece)
            refuse_above(max_bytes, size, name=name)
    return Content(size=size, sha256=digest.hexdigest(), path=path.absolute())


def content_of_stored(file: FieldFile, *, name: str, max_bytes: int) -> Content:
    """Of an upload, wherever the storage keeps it. Raises OSError, ValueError or ParseError."""
    try:
        path = Path(file.path)
    except NotImplementedError:  # not in a file system of ours
        with file.open("rb") as opened:
            refuse_above(max_bytes, opened.size, name=name)
            return content_of_bytes(opened.read())
    return content_of_file(path, name=name, max_bytes=max_bytes)


def open_file(path: Path, *, name: str) -> BinaryIO:
    """Open a regular file. A FIFO without writer or a device would be waited for: ParseError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ParseError("unsupported", NO_FILE)
    return os.fdopen(descriptor, "rb")


def refuse_above(max_bytes: int, size: int, *, name: str) -> None:
    """Raise ParseError for a content of more than `max_bytes`."""
    if size > max_bytes:
        raise ParseError(
            "too_large",
            f"{name} has {size:,} bytes; {max_bytes:,} are allowed. Split it, or raise"
            " RAGSITE_MAX_UPLOAD_BYTES.",
        )


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    while piece := read(_PIECE):
        yield piece
