"""Uploaded files and pages of the web, ingested."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

from django.conf import settings
from django.core.files.base import File
from django.core.files.uploadedfile import TemporaryUploadedFile

from common.errors import Forbidden, InvalidInput
from documents.ingestion.sources import (
    BrokenSource,
    ChunkFile,
    Source,
    bundle_chunks,
    find_chunk_files,
    storable_name,
)
from documents.models import Collection, IngestionRun
from documents.services.documents import ingest_inline, ingest_sources

if TYPE_CHECKING:
    from documents.ingestion.web_pages import Fetch


@dataclass(frozen=True, slots=True)
class Upload:
    """An uploaded file. `name` may contain folders."""

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
    """Store the files and queue them; returns at once with the run.

    With `store_once` a file with the bytes of another document becomes an alias of it.
    """
    if not uploads:
        raise InvalidInput("No file was sent. Choose at least one.", field="files")
    return ingest_sources(
        collection=collection,
        # In one order: two uploads of the same files cannot wait for each other.
        sources=sorted(
            _upload_sources(uploads),
            key=lambda entry: entry.key if isinstance(entry, Source) else "",
        ),
        user=user,
        policy=policy,
        store_once=store_once,
        access=access,
        source=uploads[0].name if len(uploads) == 1 else f"{len(uploads)} files",
    )


def _upload_sources(uploads: Sequence[Upload]) -> Iterable[Source | BrokenSource]:
    records: list[ChunkFile] = []
    for upload in uploads:
        found = find_chunk_files(storable_name(upload.name), partial(_open_upload, upload))
        if found is not None:
            records += found
            continue
        file = upload.file  # a large one is in a temporary file of Django's
        yield Source(
            key=storable_name(upload.name),
            name=storable_name(upload.name),
            size=file.size,
            read=file.read,
            declared={"metadata": upload.metadata} if upload.metadata else {},
            path=Path(file.temporary_file_path())
            if isinstance(file, TemporaryUploadedFile)
            else None,
        )
    yield from bundle_chunks(records)


@contextmanager
def _open_upload(upload: Upload) -> Iterator[IO[bytes]]:
    """The upload from its beginning; not closed, because it is read more than once."""
    upload.file.seek(0)
    yield cast("IO[bytes]", upload.file)
    upload.file.seek(0)


def require_urls(urls: Sequence[str]) -> None:
    """Raise Forbidden if fetching is disabled, and InvalidInput for an invalid URL."""
    if not settings.URL_INGESTION:
        raise Forbidden(
            "Nothing is fetched from the web here. Upload the page, or ask the operator to set"
            " RAGSITE_URL_INGESTION=true."
        )
    from documents.web_fetch import FetchError, checked_url  # noqa: PLC0415 (loads HTTPX)

    for url in urls:
        try:
            checked_url(url)
        except FetchError as error:
            raise InvalidInput(str(error), field="url") from error


def ingest_urls(
    *,
    collection: Collection,
    urls: Sequence[str],
    metadata: dict[str, Any] | None = None,
    queue: bool = True,
    user: Any = None,
    policy: str = IngestionRun.Policy.SKIP_IF_UNCHANGED,
    store_once: bool = False,
    access: Sequence[str] | None = None,
    on_progress: Callable[[IngestionRun], Any] = lambda run: None,
    fetch_with: "Fetch | None" = None,
) -> IngestionRun:
    """Fetch the pages now, and ingest them here or, with `queue`, by the workers.

    The document's key is the requested URL. A page that cannot be fetched fails alone. Raises
    Forbidden and InvalidInput.
    """
    from documents.ingestion.web_pages import fetch_page, web_sources  # noqa: PLC0415 (loads HTTPX)
    from documents.web_fetch import checked_url  # noqa: PLC0415 (loads HTTPX)

    require_urls(urls)
    fetch = fetch_with or fetch_page
    sources = web_sources(collection, urls, metadata=metadata, fetch_with=fetch)
    common: dict[str, Any] = {
        "collection": collection,
        "policy": policy,
        "store_once": store_once,
        "access": access,
        "source": ", ".join(str(checked_url(url)) for url in urls),
    }
    if not queue:
        return ingest_inline(**common, sources=sources, on_progress=on_progress)
    # Before there is a transaction: a slow server must not hold one open.
    return ingest_sources(**common, sources=list(sources), user=user)
