"""Pages of the web as sources."""

import codecs
from collections.abc import Callable, Iterable, Iterator
from pathlib import PurePosixPath
from typing import Any

from django.conf import settings

from documents.fetching import Fetched, FetchError, checked_url, fetch
from documents.ingestion.sources import BrokenSource, Source, clean_name, sha256
from documents.models import Collection, Document

#: What a server calls it, and the suffix that parsers know it by.
SUFFIXES = {
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
#: Types that say nothing: the suffix in the address knows more.
VAGUE = frozenset({"", "text/plain", "application/octet-stream", "binary/octet-stream"})
#: Whose bytes say nothing of their encoding.
PLAIN = frozenset({"text/plain", "text/csv", "text/markdown", "text/x-rst"})

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
    """Fetch each page as it is asked for; one that cannot be had comes out as BrokenSource."""
    for url in urls:
        try:
            fetched = fetch_with(url)
        except FetchError as error:
            yield BrokenSource(clean_name(_shown(url)), 0, error.code, str(error))
        else:
            yield _source(collection, fetched, metadata or {})


def _shown(url: str) -> str:
    """The address as a key; what is none, as it is, without a login that it may hold."""
    try:
        return str(checked_url(url))
    except FetchError:
        return url.rpartition("@")[2][:1024]


def _source(collection: Collection, fetched: Fetched, metadata: dict[str, Any]) -> Source:
    data = _as_utf8(fetched)
    declared = {
        "url": fetched.url,
        "file_name": file_name(fetched),
        "metadata": {
            "final_url": fetched.final_url,
            "fetched_at": fetched.fetched_at.isoformat(timespec="seconds"),
            **metadata,
        },
    }
    before = Document.objects.filter(
        collection=collection, key=fetched.url, is_current=True, source_sha256=sha256(data)
    ).first()
    if before is not None and _but_time(before.declared) == _but_time(declared):
        declared = before.declared  # the same page again: it was fetched when it was new
    return Source(
        key=fetched.url,
        name=fetched.url,
        size=len(data),
        read=lambda: data,
        declared=declared,
    )


def _but_time(declared: dict[str, Any]) -> dict[str, Any]:
    metadata = {
        name: value for name, value in declared.get("metadata", {}).items() if name != "fetched_at"
    }
    return {**declared, "metadata": metadata}


def file_name(fetched: Fetched) -> str:
    """A name by which the right parser reads it: the server's word, else the address's suffix."""
    path = PurePosixPath(fetched.final_url.partition("?")[0].partition("://")[2])
    name = path.name if len(path.parts) > 1 else "index"
    if fetched.media_type in VAGUE:
        return name
    suffix = SUFFIXES.get(fetched.media_type)
    if suffix is None or name.lower().endswith(suffix):
        return name
    return name + suffix


def _as_utf8(fetched: Fetched) -> bytes:
    """Where only the header knows how a text is encoded, in UTF-8."""
    if fetched.media_type not in PLAIN or not fetched.charset:
        return fetched.data
    try:
        if codecs.lookup(fetched.charset).name == "utf-8":
            return fetched.data
        return fetched.data.decode(fetched.charset).encode()
    except (LookupError, UnicodeError):
        return fetched.data  # the parser will tell
