"""Files that a browser or a program sends, brought in."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, cast

from django.core.files.base import File
from django.core.files.uploadedfile import TemporaryUploadedFile

from common.errors import InvalidInput
from documents.ingestion.sources import (
    BrokenSource,
    ChunkFile,
    Source,
    bundle_chunks,
    chunk_files,
    clean_name,
)
from documents.models import Collection, IngestionRun
from documents.services.documents import ingest_sources


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a browser or a program sent. `name` may hold the folders it came from."""

    name: str
    file: "File[Any]"
    metadata: dict[str, Any] = field(default_factory=dict)


def ingest_uploads(
    *,
    collection: Collection,
    uploads: Sequence[Upload],
    user: Any = None,
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    access: Sequence[str] | None = None,
) -> IngestionRun:
    """Store the files and queue them; returns at once with the run to watch.

    With `store_once` a file with the bytes of another document becomes a link to that.
    """
    if not uploads:
        raise InvalidInput("No file was sent. Choose at least one.", field="files")
    return ingest_sources(
        collection=collection,
        # In one order: two uploads of the same files cannot wait for each other.
        sources=sorted(_upload_sources(uploads), key=_order),
        user=user,
        policy=policy,
        store_once=store_once,
        access=access,
        source=uploads[0].name if len(uploads) == 1 else f"{len(uploads)} files",
    )


def _upload_sources(uploads: Sequence[Upload]) -> Iterable[Source | BrokenSource]:
    records: list[ChunkFile] = []
    for upload in uploads:
        found = chunk_files(clean_name(upload.name), partial(_opened, upload))
        if found is not None:
            records += found
            continue
        yield Source(
            key=clean_name(upload.name),
            name=clean_name(upload.name),
            size=upload.file.size,
            read=upload.file.read,
            declared={"metadata": upload.metadata} if upload.metadata else {},
            path=_temporary_path(upload),
        )
    yield from bundle_chunks(records)


@contextmanager
def _opened(upload: Upload) -> Iterator[IO[bytes]]:
    """The upload from its beginning, left open: it is read more than once."""
    upload.file.seek(0)
    yield cast("IO[bytes]", upload.file)
    upload.file.seek(0)


def _temporary_path(upload: Upload) -> Path | None:
    """Where Django has put the upload meanwhile: large ones are not in memory."""
    return (
        Path(upload.file.temporary_file_path())
        if isinstance(upload.file, TemporaryUploadedFile)
        else None
    )


def _order(entry: Source | BrokenSource) -> str:
    return entry.key if isinstance(entry, Source) else ""
