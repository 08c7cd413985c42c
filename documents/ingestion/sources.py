"""Sources of documents: files, directories, chunk JSON and text, and their bytes. Begin with
`discover`. No database tables here."""

import hashlib
import json
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from functools import partial
from io import BytesIO
from itertools import chain, starmap
from pathlib import Path
from typing import Any, BinaryIO, cast

from django.conf import settings
from django.db.models.fields.files import FieldFile

from common import bounded_json
from common.errors import ExplainedError, InvalidInput
from common.translation import format_number, gettext
from reading.parsers import ParseError
from reading.parsers.base import ErrorCode
from reading.parsers.chunk_json import (
    CHUNK_BUNDLE_SUFFIX,
    MAX_RECORD_BYTES,
    Layout,
    Opener,
    RecordSpan,
    chunk_layout,
    parse_chunk_json,
    read_record,
    record_name,
    record_spans,
)
from reading.sandbox.limits import ParserLimits

NOT_A_REGULAR_FILE = (
    "This is not a file but a pipe, a socket or a device. Save its output as a file."
)


@dataclass(frozen=True, slots=True)
class SkippedFile:
    """A path that cannot be read as a file; `reason` says how to fix it."""

    path: Path
    code: ErrorCode
    reason: str


def walk(directory: Path, glob: str) -> Iterator[list[Path | SkippedFile]]:
    """Paths that `glob` matches, directory by directory, sorted within a directory.

    `*` matches within one name and `**` any number of directories. Hidden files and directories are
    skipped, and links to directories not followed.
    """
    pattern = glob.split("/")
    waiting: list[tuple[str, ...]] = [()]
    while waiting:
        below = waiting.pop()
        here = directory.joinpath(*below)
        try:
            names = sorted(name for name in os.listdir(here) if name[0] != ".")  # noqa: PTH208
        except OSError as error:
            yield [SkippedFile(here, "unreadable", _unreadable_reason(error))]
            continue
        directories = [name for name in names if os.path.isdir(here / name)]  # noqa: PTH112
        if "**" in pattern or len(below) + 1 < len(pattern):
            inner = [name for name in directories if not (here / name).is_symlink()]
            waiting += [(*below, name) for name in reversed(inner)]
        matching = [
            here / name
            for name in names
            if name not in directories and _parts_match((*below, name), pattern)
        ]
        if matching:
            yield [check_file(path) for path in matching]


def matches_glob(relative: str, glob: str) -> bool:
    """Whether `walk` with `glob` would yield this relative path."""
    return _parts_match(relative.split("/"), glob.split("/"))


def check_file(path: Path) -> Path | SkippedFile:
    """The path itself if it is a readable regular file, else what is wrong with it."""
    try:
        mode = path.stat().st_mode
    except OSError as error:
        if path.is_symlink():
            target = os.fsencode(path.readlink()).decode(errors="replace")
            dead_link_reason = (
                f"This link to {target} leads nowhere or to itself. Correct or remove it."
            )
            return SkippedFile(path, "unreadable", dead_link_reason)
        return SkippedFile(path, "unreadable", _unreadable_reason(error))
    if stat.S_ISREG(mode):
        return path
    return SkippedFile(path, "unsupported", NOT_A_REGULAR_FILE)


def may_exist(path: Path) -> bool:
    """Only a definite answer counts: a file that cannot be reached may exist."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    return True


def _parts_match(parts: Sequence[str], pattern: Sequence[str]) -> bool:
    if not pattern:
        return not parts
    if pattern[0] == "**":
        return any(_parts_match(parts[at:], pattern[1:]) for at in range(len(parts) + 1))
    return (
        bool(parts) and fnmatchcase(parts[0], pattern[0]) and _parts_match(parts[1:], pattern[1:])
    )


def _unreadable_reason(error: OSError) -> str:
    return f"It cannot be read: {error.strerror}. Check its permissions."


@dataclass(frozen=True, slots=True)
class Source:
    """One document to be ingested: `key` identifies it in its collection, `read` gives its bytes.

    `declared` is the caller's title, language, media_type, url and metadata, which take precedence
    over the file's own. `path` is the file, if it is a local one: large files are read from their
    path. `is_given_text`: a program gave it as a string. `access` is the access list of a new
    document; None is everybody in the workspace.
    """

    key: str
    name: str
    size: int
    read: Callable[[], bytes]
    declared: dict[str, Any] = field(default_factory=dict)
    path: Path | None = None
    is_given_text: bool = False
    access: tuple[str, ...] | None = None

    @property
    def part_of(self) -> str:
        """The key of the mail, archive or mbox that it was taken out of; else empty."""
        return str(self.declared.get("part_of", ""))


@dataclass(frozen=True, slots=True)
class BrokenSource:
    """A file that cannot be part of any document, and why."""

    name: str
    size: int
    code: str
    reason: str


Entry = Source | BrokenSource

#: Maximum length of one document's metadata as JSON.
MAX_METADATA_CHARACTERS = 20_000
MAX_KEY_CHARACTERS = 1024
#: PostgreSQL indexes no longer key than a third of its 8 kB page.
MAX_KEY_BYTES = 2048


def storable_name(name: str) -> str:
    """The name with undecodable bytes replaced by U+FFFD, as a database can store it."""
    return name.encode(errors="surrogateescape").decode(errors="replace").replace("\0", "\ufffd")


def storable_key(path: str) -> str:
    """Like `storable_name`, but names that differ only in undecodable bytes stay different."""
    return path.encode(errors="surrogateescape").decode(errors="backslashreplace")


def checked_metadata(metadata: object) -> dict[str, Any]:
    """What a caller says of a document, as JSON that can be stored. Raises InvalidInput."""
    if not isinstance(metadata, Mapping):
        raise InvalidInput(
            gettext("The metadata must be an object with names and values."), field="metadata"
        )
    try:
        plain: dict[str, Any] = json.loads(json.dumps(dict(metadata)))
        bounded_json.check(plain)
    except InvalidInput as error:
        raise InvalidInput(
            gettext("The metadata cannot be stored: {error}").format(error=error), field="metadata"
        ) from error
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidInput(
            gettext("The metadata is not valid JSON: {error}.").format(error=error),
            field="metadata",
        ) from error
    if len(str(plain)) > MAX_METADATA_CHARACTERS:
        raise InvalidInput(
            gettext("The metadata may have at most {limit} characters. Shorten it.").format(
                limit=format_number(MAX_METADATA_CHARACTERS)
            ),
            field="metadata",
        )
    return plain


class SourceError(ExplainedError):
    """The request names nothing that can be ingested."""


class NothingFoundError(SourceError):
    """No file exists, or none matches the glob."""

    def __init__(self, paths: Sequence[Path], glob: str) -> None:
        where = ", ".join(map(str, paths))
        if glob == "**/*":
            message = f"{where} contains no file, so nothing was ingested."
        else:
            message = (
                f"No file in {where} matches the glob “{glob}”, so nothing was ingested. `*`"
                " does not cross a `/`: `**/*.md` also looks in subfolders."
            )
        super().__init__(f"{message} Hidden files are skipped.")


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
) -> Iterator[Entry]:
    """Sources under `paths` in a stable order, directory by directory.

    A directory is searched with `glob`; `*` never crosses a `/`. Hidden files and directories are
    skipped, links to directories not followed, and with `below` neither are links to files outside
    it. Raises SourceError for a path that does not exist.
    """
    for path in paths:
        if not path.exists():
            raise SourceError(gettext("{path} does not exist. Check the path.").format(path=path))
        for siblings in walk(path, glob) if path.is_dir() else [[check_file(path)]]:
            yield from _directory_sources(siblings, root=path, below=below)


def discover_any(
    paths: Sequence[Path], *, glob: str = "**/*", below: Path | None = None
) -> Iterator[Entry]:
    """Like `discover`, but raises NothingFoundError at once where there is no source at all."""
    sources = discover(paths, glob=glob, below=below)
    first = next(sources, None)
    if first is None:
        raise NothingFoundError(paths, glob)
    return chain([first], sources)


def _directory_sources(
    siblings: Sequence[Path | SkippedFile], *, root: Path, below: Path | None
) -> Iterator[Entry]:
    records: list[ChunkFile] = []
    directory = ""
    for file in siblings:
        if isinstance(file, SkippedFile):
            yield BrokenSource(_display_name(file.path, root), 0, file.code, file.reason)
            continue
        name = _display_name(file, root)
        if below is not None and not file.resolve().is_relative_to(below):
            reason = "This link leads outside the directory. Copy the file into it."
            yield BrokenSource(name, 0, "unreadable", reason)
            continue
        try:
            found = find_chunk_files(name, cast("Opener", partial(file.open, "rb")))
        except OSError as error:
            yield BrokenSource(name, _file_size(file), "unreadable", _unreadable_reason(error))
            continue
        if found is None:
            yield Source(
                key=storable_key(str(file.resolve())),
                name=name,
                size=_file_size(file),
                read=file.read_bytes,
                path=file,
            )
            continue
        records += found
        directory = directory or storable_key(f"{file.parent.resolve()}/")
    yield from bundle_chunks(records, key_prefix=directory)


def _file_size(file: Path) -> int:
    """0 if it vanished: whoever reads it will notice."""
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _display_name(file: Path, root: Path) -> str:
    return storable_name(file.name if file == root else str(file.relative_to(root)))


@dataclass(frozen=True, slots=True)
class ChunkFile:
    """A chunk record in a file, or a file that is one record. `read` is called twice: to learn its
    document, and for its bytes."""

    name: str
    size: int
    read: Callable[[], bytes]


def find_chunk_files(name: str, opened: Opener) -> Iterator[ChunkFile] | None:
    """The chunk records of a file, recognised by their fields; None for any other file. Raises
    OSError."""
    layout = chunk_layout(name, opened)
    return None if layout is None else _iterate_chunk_files(name, opened, layout)


def _iterate_chunk_files(name: str, opened: Opener, layout: Layout) -> Iterator[ChunkFile]:
    def refused(error: ParseError) -> bytes:
        raise error

    try:
        for span in record_spans(opened, layout):
            read = partial(read_record, opened, span)
            yield ChunkFile(record_name(name, span, layout), span.size, read)
    except ParseError as error:
        yield ChunkFile(name, 0, partial(refused, error))
    except OSError:
        # Deleted since the check: reading it reports that.
        yield ChunkFile(name, 0, partial(read_record, opened, RecordSpan(1, 0, 0)))


def bundle_chunks(files: Iterable[ChunkFile], *, key_prefix: str = "") -> Iterator[Entry]:
    """Group chunk records into one source a document, by their `source_document`.

    Records that cannot be read, or repeat an id of their document, come out as BrokenSource, each
    by its own name.
    """
    # By document and chunk id the chunk's ordinal and file; no more is kept of the records.
    documents: dict[str, dict[str, tuple[int, ChunkFile]]] = {}
    for file in files:
        try:
            record = parse_chunk_json(_chunk_bytes(file), name=file.name)
            places = documents.setdefault(record.source_document, {})
            if twin := places.get(record.chunk_id):
                raise ParseError(
                    "malformed",
                    f"The id {record.chunk_id[:200]} is also in {twin[1].name}. Give each chunk its"
                    " own id.",
                )
        except ParseError as error:
            yield BrokenSource(file.name, file.size, error.code, str(error))
        except OSError as error:
            reason = f"{file.name} cannot be read: {error.strerror}. Check its permissions."
            yield BrokenSource(file.name, file.size, "unreadable", reason)
        else:
            places[record.chunk_id] = (record.ordinal, file)
    for source_document, places in documents.items():
        if places:
            in_order = sorted((ordinal, pk) for pk, (ordinal, _) in places.items())
            chunks = [(pk, places[pk][1]) for _, pk in in_order]
            yield _bundle_source(source_document, chunks, key_prefix)


def _chunk_bytes(file: ChunkFile) -> bytes:
    if file.size > MAX_RECORD_BYTES:
        raise ParseError(
            "too_large",
            f"{file.name} has {file.size:,} bytes; a chunk record may have {MAX_RECORD_BYTES:,}."
            " Split the chunk.",
        )
    return file.read()


def _bundle_source(
    source_document: str, chunks: Sequence[tuple[str, ChunkFile]], key_prefix: str
) -> Source:
    def line(chunk_id: str, file: ChunkFile) -> bytes:
        try:
            # With the ids that it may only have from the name of its file.
            record = json.loads(_chunk_bytes(file)) | {
                "chunk_id": chunk_id,
                "source_document": source_document,
            }
        except (ValueError, TypeError) as error:
            raise ParseError(
                "malformed", f"{file.name} changed while it was read. Ingest it again."
            ) from error
        return json.dumps(record, ensure_ascii=False).encode(errors="backslashreplace")

    return Source(
        key=key_prefix + source_document,
        name=source_document + CHUNK_BUNDLE_SUFFIX,
        size=sum(file.size for _, file in chunks),
        read=lambda: b"\n".join(starmap(line, chunks)),
    )


#: Larger files are hashed piece by piece, and read by the parser process alone.
MAX_IN_MEMORY = 1024 * 1024
_BLOCK_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Content:
    """A document's bytes, in memory or as the path of a file.

    `is_given_text`: a program gave it as a string.
    """

    size: int
    sha256: str
    data: bytes | None = None
    path: Path | None = None
    is_given_text: bool = False

    def open(self) -> BinaryIO:
        """The bytes as a file, from the beginning."""
        if self.path is not None:
            return self.path.open("rb")
        return BytesIO(self.data or b"")


def read_content(source: Source, *, max_bytes: int) -> Content:
    """The source's content, hashed. Raises ParseError if it cannot be read or is too large."""
    try:
        if source.path is not None:
            return content_from_file(source.path, name=source.name, max_bytes=max_bytes)
        check_size(max_bytes, source.size, name=source.name)
        data = source.read()
    except OSError as error:
        raise ParseError(
            "unreadable",
            f"{source.name} cannot be read: {error.strerror}. Check its permissions.",
        ) from error
    check_size(max_bytes, len(data), name=source.name)
    return content_from_bytes(data, is_given_text=source.is_given_text)


def content_digest(source: Source) -> str | None:
    """The hash of its bytes; None if it cannot be read or is too large, which ingestion reports."""
    try:
        return read_content(source, max_bytes=settings.MAX_UPLOAD_BYTES).sha256
    except ParseError:
        return None


def content_from_bytes(data: bytes, *, is_given_text: bool = False) -> Content:
    """The content of bytes in memory."""
    digest = hashlib.sha256(data).hexdigest()
    return Content(size=len(data), sha256=digest, data=data, is_given_text=is_given_text)


def content_from_file(path: Path, *, name: str, max_bytes: int) -> Content:
    """The content of a file, of which at most `max_bytes` are read, even if it grows meanwhile.

    Raises OSError, and ParseError for what is too large or not a regular file.
    """
    with open_file(path, name=name) as file:
        check_size(max_bytes, os.fstat(file.fileno()).st_size, name=name)
        first = file.read(min(max_bytes, MAX_IN_MEMORY) + 1)
        if len(first) <= min(max_bytes, MAX_IN_MEMORY):
            return content_from_bytes(first)
        digest, size = hashlib.sha256(first), len(first)
        while piece := file.read(_BLOCK_BYTES):
            digest.update(piece)
            size += len(piece)
            check_size(max_bytes, size, name=name)
    return Content(size=size, sha256=digest.hexdigest(), path=path.absolute())


def content_from_storage(file: FieldFile, *, name: str, max_bytes: int) -> Content:
    """The content of an upload, wherever the storage keeps it. Raises OSError, ValueError or
    ParseError."""
    try:
        path = Path(file.path)
    except NotImplementedError:  # not in a file system of ours
        with file.open("rb") as opened:
            check_size(max_bytes, opened.size, name=name)
            return content_from_bytes(opened.read())
    return content_from_file(path, name=name, max_bytes=max_bytes)


def open_file(path: Path, *, name: str) -> BinaryIO:
    """Open a regular file. Raises ParseError for a FIFO or device, which would block."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ParseError("unsupported", NOT_A_REGULAR_FILE)
    return os.fdopen(descriptor, "rb")


def parser_limits(**changes: Any) -> ParserLimits:
    """The limits of the settings for one file in the parser process, with `changes`."""
    own = ParserLimits(
        seconds=settings.PARSER_SECONDS,
        memory_bytes=settings.PARSER_MEMORY_BYTES,
        max_bytes=settings.MAX_UPLOAD_BYTES,
    )
    return replace(own, **changes)


def check_size(max_bytes: int, size: int, *, name: str) -> None:
    """Raise ParseError for a content of more than `max_bytes`."""
    if size > max_bytes:
        raise ParseError(
            "too_large",
            f"{name} has {size:,} bytes; {max_bytes:,} are allowed. Split it, or raise"
            " RAGSITE_MAX_UPLOAD_BYTES.",
        )


BATCH_FILES = 256
BATCH_BYTES = 16 * 1024 * 1024
SEGMENT_FILES = 20_000
#: A larger file goes alone: as text, chunks and vectors it takes many times its size.
LARGE_FILE = 32 * 1024 * 1024


def split_segments(sources: Iterable[Entry]) -> Iterator[Iterator[Entry]]:
    """Segments of sources, in order, in which no key comes twice and no large file has company.

    Each must be consumed before the next is requested. If one is processed before the next begins,
    the later of two sources with one key replaces the earlier, as it would in two runs, and two
    large files are never in memory together.
    """
    rest = iter(sources)
    following = next(rest, None)

    def segment() -> Iterator[Entry]:
        nonlocal following
        keys: set[str] = set()
        count = 0
        while following is not None and count < SEGMENT_FILES:
            is_large = following.size > LARGE_FILE
            if isinstance(following, Source):
                if following.key in keys or (is_large and count):
                    return
                keys.add(following.key)
            count += 1
            current, following = following, None
            yield current
            following = next(rest, None)
            if is_large:
                return

    while following is not None:
        yield segment()


def split_batches(sources: Iterable[Entry]) -> Iterator[list[Entry]]:
    """Lists of at most BATCH_FILES sources and BATCH_BYTES bytes; a single large source may exceed
    that."""
    batch: list[Entry] = []
    size = 0
    for source in sources:
        if batch and (len(batch) >= BATCH_FILES or size + source.size > BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(source)
        size += source.size
    if batch:
        yield batch
