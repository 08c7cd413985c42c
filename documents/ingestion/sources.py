"""What is ingested: files, directories, chunk JSON, text. No tables here."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from documents.ingestion.chunk_lines import (
    MAX_LINE_BYTES,
    ChunkLine,
    Opener,
    holds_chunks,
    line_name,
    lines_of,
    read_line,
)
from documents.ingestion.walking import Oddity, look_at, walk
from documents.parsers import ParseError
from documents.parsers.chunk_json import (
    CHUNK_BUNDLE_SUFFIX,
    is_chunk_json_name,
    parse_chunk_json,
)

#: Of one chunk file: the longest chunk, twice, in any encoding of JSON.
MAX_CHUNK_FILE_BYTES = MAX_LINE_BYTES


@dataclass(frozen=True, slots=True)
class Source:
    """One document to be: `key` identifies it in its collection, `read` gives its bytes.

    `declared` is what the caller says of it (title, language, media_type, url, metadata) and goes
    before anything that the file itself says. Where the bytes lie in a file here, `path` leads to
    it: large files are read by their path, see `documents.ingestion.contents`. `is_given_text`
    tells that a program gave it as a string. `access` is who may see it, if it is new; None is
    everybody in the workspace.
    """

    key: str
    name: str
    size: int
    read: Callable[[], bytes]
    declared: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    is_given_text: bool = False
    access: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class BrokenSource:
    """A file that cannot become part of any document, and why."""

    name: str
    size: int
    code: str
    reason: str


#: Of one document's metadata, written out.
MAX_METADATA_CHARACTERS = 20_000
#: PostgreSQL indexes no longer key than a third of its 8 kB page.
MAX_KEY_BYTES = 2048


def clean_name(name: str) -> str:
    """The name as a database can store it: bytes that are no text become U+FFFD."""
    return name.encode(errors="surrogateescape").decode(errors="replace").replace("\0", "\ufffd")


def clean_key(path: str) -> str:
    """Like `clean_name`, but two names that differ only in bytes that are no text stay two."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def checked_key(source: Source) -> Source | BrokenSource:
    """The source itself, or why its key is none."""
    if 0 < len(source.key) <= 1024 and len(source.key.encode()) <= MAX_KEY_BYTES:
        return source
    return BrokenSource(
        name=source.name,
        size=source.size,
        code="malformed",
        reason="The name with its folders is longer than 1,024 characters or 2,048 bytes."
        " Shorten it.",
    )


class SourceError(Exception):
    """The request itself names nothing that can be ingested."""


def text_source(key: str, text: str, **declared: Any) -> Source:
    """A document out of a string."""
    data = text.encode()
    return Source(
        key=key,
        name=key,
        size=len(data),
        read=lambda: data,
        declared=declared,
        is_given_text=True,
    )


def discover(
    paths: Iterable[Path], *, glob: str = "**/*", below: Path | None = None
) -> Iterator[Source | BrokenSource]:
    """Sources under `paths` in a stable order, directory by directory.

    A directory is searched with `glob`; `*` never crosses a `/`. Hidden files and directories
    are passed over, and links to directories not followed; with `below`, nor links to files that
    lead out of it. Raises SourceError for a path that does not exist.
    """
    for path in paths:
        if not path.exists():
            raise SourceError(f"{path} does not exist. Check the path.")
        for siblings in walk(path, glob) if path.is_dir() else [[look_at(path)]]:
            yield from _from_directory([_kept_in(below, file) for file in siblings], root=path)


def _kept_in(below: Path | None, file: Path | Oddity) -> Path | Oddity:
    if below is None or isinstance(file, Oddity) or file.resolve().is_relative_to(below):
        return file
    return Oddity(file, "unreadable", "This link leads out of what may be read. Copy the file.")


def _from_directory(
    siblings: Sequence[Path | Oddity], *, root: Path
) -> Iterator[Source | BrokenSource]:
    chunk_files: list[ChunkFile] = []
    directory = ""
    for file in siblings:
        if isinstance(file, Oddity):
            yield BrokenSource(_shown_name(file.path, root), 0, file.code, file.reason)
            continue
        if is_chunk_json_name(file.name):
            chunk_files.append(_chunk_file(file, root))
        elif holds_chunks(file.name, _opener(file)):
            chunk_files += chunk_line_files(_shown_name(file, root), _opener(file))
        else:
            yield _file_source(file, root=root)
            continue
        directory = directory or clean_key(f"{file.parent.resolve()}/")
    yield from bundle_chunks(chunk_files, key_prefix=directory)


def _file_source(file: Path, *, root: Path) -> Source:
    return Source(
        key=clean_key(str(file.resolve())),
        name=_shown_name(file, root),
        size=_size(file),
        read=file.read_bytes,
        path=file,
    )


def _opener(file: Path) -> Opener:
    return lambda: file.open("rb")


def _chunk_file(file: Path, root: Path) -> "ChunkFile":
    return ChunkFile(_shown_name(file, root), _size(file), file.read_bytes)


def _size(file: Path) -> int:
    """Whoever reads it will see whether it is gone."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _shown_name(file: Path, root: Path) -> str:
    return clean_name(file.name if file == root else str(file.relative_to(root)))


@dataclass(frozen=True, slots=True)
class ChunkFile:
    """A chunk JSON file. `read` is called twice: to learn where it belongs, and for its bytes."""

    name: str
    size: int
    read: Callable[[], bytes]


def chunk_line_files(name: str, opened: Opener) -> Iterator[ChunkFile]:
    """Each line of a file of JSON Lines as the chunk file that it could have been."""

    def reading(line: ChunkLine) -> Callable[[], bytes]:
        return lambda: read_line(opened, line)

    try:
        for line in lines_of(opened):
            yield ChunkFile(line_name(name, line), line.size, reading(line))
    except OSError:
        # Gone since it was looked at: reading it as a chunk file says so.
        yield ChunkFile(name, 0, lambda: read_line(opened, ChunkLine(1, 0, 0)))


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where a chunk stands in its document; so much of it is remembered until all are known."""

    ordinal: int
    chunk_id: str
    file: ChunkFile = field(compare=False)


def bundle_chunks(
    files: Iterable[ChunkFile], *, key_prefix: str = ""
) -> Iterator[Source | BrokenSource]:
    """Group chunk JSON files into one source a document, by their `source_document`.

    Files that cannot be read come out as BrokenSource, each by its own name.
    """
    documents: dict[str, list[_Place]] = {}
    for file in files:
        try:
            record = parse_chunk_json(_chunk_bytes(file), name=file.name)
        except ParseError as error:
            yield BrokenSource(file.name, file.size, error.code, str(error))
        except OSError as error:
            reason = f"{file.name} cannot be read: {error.strerror}. Check its permissions."
            yield BrokenSource(file.name, file.size, "unreadable", reason)
        else:
            place = _Place(record.ordinal, record.chunk_id, file)
            documents.setdefault(record.source_document, []).append(place)
    for source_document, places in documents.items():
        yield _bundle(source_document, sorted(places), key_prefix)


def _chunk_bytes(file: ChunkFile) -> bytes:
    if file.size > MAX_CHUNK_FILE_BYTES:
        raise ParseError(
            "too_large",
            f"{file.name} has {file.size:,} bytes; a chunk file may have"
            f" {MAX_CHUNK_FILE_BYTES:,}. Split the chunk.",
        )
    return file.read()


def _bundle(source_document: str, places: Sequence[_Place], key_prefix: str) -> Source:
    def read() -> bytes:
        return b"\n".join(_one_line(place.file) for place in places)

    return Source(
        key=key_prefix + source_document,
        name=source_document + CHUNK_BUNDLE_SUFFIX,
        size=sum(place.file.size for place in places),
        read=read,
    )


def _one_line(file: ChunkFile) -> bytes:
    try:
        value = json.loads(_chunk_bytes(file))
        return json.dumps(value, ensure_ascii=False).encode(errors="backslashreplace")
    except ValueError as error:
        raise ParseError("malformed", f"{file.name} changed while it was read.") from error


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()
