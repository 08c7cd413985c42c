"""Pages of the web as sources. Begin with `web_sources`."""

import codecs
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings

from documents.ingestion.sources import BrokenSource, Source, storable_name
from documents.models import Collection, Document
from reading.web_fetch import Fetched, FetchError, checked_url, fetch

#: File name suffix for parsers, by a server's media type.
SUFFIX_BY_MEDIA_TYPE = {
    "text/html": ".html",
    "application/xhtml+xml": ".html",
    "text/markdown": ".md",
    "text/x-rst": ".rst",
    "text/csv": ".csv",
    "application/json": ".json",
    "application/x-ndjson": ".jsonl",
    "application/pdf": ".pdf",
    "application/epub+zip": ".epub",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": ".docx",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": ".pptx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": ".xlsx",
}
#: Uninformative types: the suffix in the address says more.
GENERIC_MEDIA_TYPES = frozenset(
    {"", "text/plain", "application/octet-stream", "binary/octet-stream"}
)
#: Types whose bytes do not tell their encoding.
TEXT_MEDIA_TYPES = frozenset({"text/plain", "text/csv", "text/markdown", "text/x-rst"})

Fetch = Callable[[str], Fetched]


def fetch_page(url: str) -> Fetched:
    """From the public internet. Raises FetchError."""
    return fetch(url, max_bytes=settings.MAX_UPLOAD_BYTES)


def web_sources(
    collection: Collection,
    urls: Iterable[str],
    *,
    metadata: dict[str, Any] | None = None,
    fetch_with: Fetch = fetch_page,
) -> Iterator[Source | BrokenSource]:
    """Fetch each page when it is iterated; one that cannot be fetched becomes a BrokenSource."""
    for url in urls:
        try:
            fetched = fetch_with(url)
        except FetchError as error:
            try:
                name = str(checked_url(url))
            except FetchError:
                name = url.rpartition("@")[2][:1024]  # without a login it may contain
            yield BrokenSource(storable_name(name), 0, error.code, str(error))
        else:
            yield _page_source(collection, fetched, metadata or {})


def _page_source(collection: Collection, fetched: Fetched, metadata: dict[str, Any]) -> Source:
    data = as_utf8(fetched.data, media_type=fetched.media_type, charset=fetched.charset)
    declared = {
        "url": fetched.url,
        "file_name": page_file_name(fetched),
        "metadata": {
            "final_url": fetched.final_url,
            "fetched_at": fetched.fetched_at.isoformat(timespec="seconds"),
            **metadata,
        },
    }
    before = Document.objects.filter(
        collection=collection,
        key=fetched.url,
        is_current=True,
        source_sha256=hashlib.sha256(data).hexdigest(),
    ).first()
    if before is not None and _without_fetch_time(before.declared) == _without_fetch_time(declared):
        declared = before.declared  # the same page again: it was fetched when it was new
    return Source(
        key=fetched.url,
        name=fetched.url,
        size=len(data),
        read=lambda: data,
        declared=declared,
    )


def as_utf8(data: bytes, *, media_type: str, charset: str) -> bytes:
    """A text whose encoding only the server's header gives, in UTF-8; all else as it is. What
    cannot be decoded the parser will report."""
    if media_type in TEXT_MEDIA_TYPES and charset:
        with suppress(LookupError, UnicodeError):
            if codecs.lookup(charset).name != "utf-8":
                return data.decode(charset).encode()
    return data


def _without_fetch_time(declared: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        name: value for name, value in declared.get("metadata", {}).items() if name != "fetched_at"
    }
    return {**declared, "metadata": metadata}


def page_file_name(fetched: Fetched) -> str:
    """A name for parser detection: the suffix of the server's media type, else of the URL."""
    path = PurePosixPath(fetched.final_url.partition("?")[0].partition("://")[2])
    name = path.name if len(path.parts) > 1 else "index"
    if fetched.media_type in GENERIC_MEDIA_TYPES:
        return name
    suffix = SUFFIX_BY_MEDIA_TYPE.get(fetched.media_type)
    if suffix is None or name.lower().endswith(suffix):
        return name
    return name + suffix
