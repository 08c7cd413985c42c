"""What is ingested: files, directories, chunk JSON, text. No tables here."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from documents.parsers import ParseError
from documents.parsers.chunk_json import ChunkRecord, is_chunk_json_name, parse_chunk_json

#: A stored bundle of chunk JSON records, one a line: all chunks of one document.
CHUNK_BUNDLE_SUFFIX = ".chunks.jsonl"


@dataclass(frozen=True, slots=True)
class Source:
    """One document to be: `key` identifies it in its collection, `read` gives its bytes.

    `declared` is what the caller says of it (title, language, media_type, url, metadata) and goes
    before anything that the file itself says.
    """

    key: str
    name: str
    size: int
    read: Callable[[], bytes]
    declared: dict[str, Any] = field(default_factory=dict)


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
    return Source(key=key, name=key, size=len(data), read=lambda: data, declared=declared)


def discover(paths: Iterable[Path], *, glob: str = "**/*") -> Iterator[Source | BrokenSource]:
    """Sources under `paths` in a stable order, directory by directory.

    A directory is searched with `glob`; `*` never crosses a `/`. Hidden files and directories
    are passed over. Raises SourceError for a path that does not exist.
    """
    for path in paths:
        if not path.exists():
            raise SourceError(f"{path} does not exist. Check the path.")
        files = [path] if path.is_file() else _files_below(path, glob)
        for _, siblings in groupby(files, key=lambda file: file.parent):
            yield from _from_directory(list(siblings), root=path)


def _files_below(directory: Path, glob: str) -> list[Path]:
    def is_shown(file: Path) -> bool:
        parts = file.relative_to(directory).parts
        return not any(part.startswith(".") for part in parts)

    return sorted(file for file in directory.glob(glob) if file.is_file() and is_shown(file))


def _from_directory(files: list[Path], *, root: Path) -> Iterator[Source | BrokenSource]:
    chunk_files = [file for file in files if is_chunk_json_name(file.name)]
    for file in files:
        if not is_chunk_json_name(file.name):
            yield _file_source(file, root=root)
    named = [(_shown_name(file, root), file.read_bytes()) for file in chunk_files]
    yield from bundle_chunks(named, key_prefix=clean_name(f"{files[0].parent.resolve()}/"))


def _file_source(file: Path, *, root: Path) -> Source:
    return Source(
        key=clean_name(str(file.resolve())),
        name=_shown_name(file, root),
        size=file.stat().st_size,
        read=file.read_bytes,
    )


def _shown_name(file: Path, root: Path) -> str:
    return clean_name(file.name if file == root else str(file.relative_to(root)))


def bundle_chunks(
    files: Iterable[tuple[str, bytes]], *, key_prefix: str = ""
) -> Iterator[Source | BrokenSource]:
    """Group chunk JSON files into one source a document, by their `source_document`.

    Files that cannot be read come out as BrokenSource, each by its own name.
    """
    documents: dict[str, list[tuple[ChunkRecord, bytes]]] = {}
    for name, data in files:
        try:
            record = parse_chunk_json(data, name=name)
        except ParseError as error:
            yield BrokenSource(name=name, size=len(data), code=error.code, reason=str(error))
        else:
            documents.setdefault(record.source_document, []).append((record, data))
    for source_document, records in documents.items():
        yield _bundle(source_document, records, key_prefix)


def _bundle(
    source_document: str, records: list[tuple[ChunkRecord, bytes]], key_prefix: str
) -> Source:
    records.sort(key=lambda pair: (pair[0].ordinal, pair[0].chunk_id))
    lines = [json.dumps(json.loads(data), ensure_ascii=False).encode() for _, data in records]
    bundle = b"\n".join(lines)
    return Source(
        key=key_prefix + source_document,
        name=source_document + CHUNK_BUNDLE_SUFFIX,
        size=len(bundle),
        read=lambda: bundle,
    )


def sha256(data: bytes) -> str:
    """Hex digest."""
    return hashlib.sha256(data).hexdigest()
