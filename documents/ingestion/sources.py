"""What is ingested: files, directories, chunk JSON, text. No tables here."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from documents.ingestion.walking import Oddity, look_at, walk
from documents.parsers import ParseError
from documents.parsers.chunk_json import CHUNK_BUNDLE_SUFFIX, parse_chunk_json
from documents.parsers.chunk_records import (
    MAX_RECORD_BYTES,
    Layout,
    Opener,
    RecordSpan,
    chunk_layout,
    read_record,
    record_name,
    record_spans,
)


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


class NothingFoundError(SourceError):
    """No file is there, or none that the glob matches."""

    def __init__(self, paths: Sequence[Path], glob: str) -> None:
        where = ", ".join(map(str, paths))
        if glob == "**/*":
            message = f"There is no file below {where}, so nothing was ingested."
        else:
            message = (
                f"No file below {where} matches the glob “{glob}”, so nothing was ingested. `*`"
                " does not cross a `/`: `**/*.md` also looks in the folders below."
            )
        super().__init__(f"{message} Hidden files are passed over.")


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


def discover_some(
    paths: Sequence[Path], *, glob: str = "**/*", below: Path | None = None
) -> Iterator[Source | BrokenSource]:
    """Like `discover`, but raises NothingFoundError at once where there is no source at all."""
    sources = discover(paths, glob=glob, below=below)
    first = next(sources, None)
    if first is None:
        raise NothingFoundError(paths, glob)
    return chain([first], sources)


def _kept_in(below: Path | None, file: Path | Oddity) -> Path | Oddity:
    if below is None or isinstance(file, Oddity) or file.resolve().is_relative_to(below):
        return file
    return Oddity(file, "unreadable", "This link leads out of what may be read. Copy the file.")


def _from_directory(
    siblings: Sequence[Path | Oddity], *, root: Path
) -> Iterator[Source | BrokenSource]:
    records: list[ChunkFile] = []
    directory = ""
    for file in siblings:
        if isinstance(file, Oddity):
            yield BrokenSource(_shown_name(file.path, root), 0, file.code, file.reason)
            continue
        try:
            found = chunk_files(_shown_name(file, root), _opener(file))
        except OSError as error:
            reason = f"It cannot be read: {error.strerror}. Check its permissions."
            yield BrokenSource(_shown_name(file, root), _size(file), "unreadable", reason)
            continue
        if found is None:
            yield _file_source(file, root=root)
            continue
        records += found
        directory = directory or clean_key(f"{file.parent.resolve()}/")
    yield from bundle_chunks(records, key_prefix=directory)


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
    """A chunk record in a file, or all of it. `read` is called twice: to learn which document it
    belongs to, and for its bytes."""

    name: str
    size: int
    read: Callable[[], bytes]


def chunk_files(name: str, opened: Opener) -> Iterator[ChunkFile] | None:
    """The chunk records of a file, which is known by their fields; None for any other file. Raises
    OSError."""
    layout = chunk_layout(name, opened)
    return None if layout is None else _chunk_files(name, opened, layout)


def _chunk_files(name: str, opened: Opener, layout: Layout) -> Iterator[ChunkFile]:
    def refused(error: ParseError) -> bytes:
        raise error

    try:
        for span in record_spans(opened, layout):
            read = partial(read_record, opened, span)
            yield ChunkFile(record_name(name, span, layout), span.size, read)
    except ParseError as error:
        yield ChunkFile(name, 0, partial(refused, error))
    except OSError:
        # Gone since it was looked at: reading it says so.
        yield ChunkFile(name, 0, partial(read_record, opened, RecordSpan(1, 0, 0)))


@dataclass(frozen=True, slots=True, order=True)
class _Place:
    """Where a chunk stands in its document; so much of it is remembered until all are known."""

    ordinal: int
    chunk_id: str
    file: ChunkFile = field(compare=False)


def bundle_chunks(
    files: Iterable[ChunkFile], *, key_prefix: str = ""
) -> Iterator[Source | BrokenSource]:
    """Group chunk records into one source a document, by their `source_document`.

    Records that cannot be read, or repeat an id of their document, come out as BrokenSource, each
    by its own name.
    """
    documents: dict[str, dict[str, _Place]] = {}
    for file in files:
        try:
            record = parse_chunk_json(_chunk_bytes(file), name=file.name)
            places = documents.setdefault(record.source_document, {})
            if twin := places.get(record.chunk_id):
                raise ParseError(
                    "malformed",
                    f"The id {record.chunk_id[:200]} is in {twin.file.name}, too, which is read."
                    " Give each chunk an id of its own.",
                )
        except ParseError as error:
            yield BrokenSource(file.name, file.size, error.code, str(error))
        except OSError as error:
            reason = f"{file.name} cannot be read: {error.strerror}. Check its permissions."
            yield BrokenSource(file.name, file.size, "unreadable", reason)
        else:
            places[record.chunk_id] = _Place(record.ordinal, record.chunk_id, file)
    for source_document, places in documents.items():
        if places:
            yield _bundle(source_document, sorted(places.values()), key_prefix)


def _chunk_bytes(file: ChunkFile) -> bytes:
    if file.size > MAX_RECORD_BYTES:
        raise ParseError(
            "too_large",
            f"{file.name} has {file.size:,} bytes; a chunk record may have {MAX_RECORD_BYTES:,}."
            " Split the chunk.",
        )
    return file.read()


def _bundle(source_document: str, places: Sequence[_Place], key_prefix: str) -> Source:
    def line(place: _Place) -> bytes:
        try:
            # With the ids that it may only have from the name of its file.
            record = json.loads(_chunk_bytes(place.file)) | {
                "chunk_id": place.chunk_id,
                "source_document": source_document,
            }
        except (ValueError, TypeError) as error:
            raise ParseError(
                "malformed", f"{place.file.name} changed while it was read."
            ) from error
        return json.dumps(record, ensure_ascii=False).encode(errors="backslashreplace")

    return Source(
        key=key_prefix + source_document,
        name=source_document + CHUNK_BUNDLE_SUFFIX,
        size=sum(place.file.size for place in places),
        read=lambda: b"\n".join(map(line, places)),
    )


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()
