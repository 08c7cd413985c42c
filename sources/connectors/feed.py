"""The entries of a feed: RSS or Atom. Begin with `Feed`."""

import calendar
import hashlib
import html
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urlsplit

import feedparser
from django.conf import settings
from lxml.html import HTMLParser, document_fromstring
from pydantic import Field

from common.translation import gettext, gettext_noop
from documents.ingestion.sources import storable_name
from reading.parsers.registry import is_html
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Item,
    ItemError,
    ItemGone,
    SourceError,
)
from sources.connectors.polite import PoliteClient, is_missing
from sources.connectors.web_address import WebAddress, normalised
from sources.connectors.web_cache import Known, WebCache
from sources.connectors.web_page import HTML_TYPES, media_type, read_page

MAX_FEED_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 5_000
MAX_TITLE_CHARACTERS = 150
#: Between two linked pages of one site, in seconds.
PAUSE = 0.5
_FEED_TYPES = frozenset({"application/rss+xml", "application/atom+xml"})
_NOT_MODIFIED = 304


class FeedOptions(ConnectorOptions):
    url: WebAddress = Field(
        title=gettext_noop("Address"),
        description=gettext_noop("Of the RSS or Atom feed, or of a page that links to it."),
    )
    full_pages: bool = Field(
        default=False,
        title=gettext_noop("Read the page behind each entry"),
        description=gettext_noop("For feeds with only the beginning of each text."),
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """One entry. `content` is HTML; `at` when it was written or changed."""

    id: str
    title: str
    author: str
    link: str
    content: str
    at: datetime | None

    @property
    def key(self) -> str:
        return self.id or self.link or self.digest

    @property
    def digest(self) -> str:
        """Of what people read: many feeds give each entry a new time now and then, or count who
        reads it by a picture."""
        page = read_page(self.page(), url=self.link)
        return page.digest or hashlib.sha256(self.page()).hexdigest()[:32]

    @property
    def name(self) -> str:
        day = f"{self.at:%Y-%m-%d} " if self.at else ""
        title = self.title.replace("/", "-")[:MAX_TITLE_CHARACTERS].strip()
        return storable_name(f"{day}{title or self.digest[:8]}.html")

    def page(self) -> bytes:
        """The entry as a web page, as which it is read."""
        author = html.escape(self.author, quote=True)
        day = self.at.isoformat() if self.at else ""
        return (
            f'<!doctype html><html><head><meta charset="utf-8"><title>{html.escape(self.title)}'
            f'</title><meta name="author" content="{author}"><meta name="date" content="{day}">'
            f"</head><body><article>{self.content}</article></body></html>"
        ).encode(errors="replace")


class Feed(Connector):
    """A feed is a window over the newest entries: what has left it is kept.

    The feed is asked whether it changed (ETag, Last-Modified), and its text is kept for when it did
    not (`WebCache`).
    """

    kind = "feed"
    label = gettext_noop("Feed (RSS, Atom)")
    lists_everything = False
    usual_schedule = "60"
    Options: ClassVar[type[ConnectorOptions]] = FeedOptions

    def __init__(self, options: FeedOptions) -> None:
        self._options = options
        place = hashlib.sha256(options.url.encode()).hexdigest()[:24]
        self._cache = WebCache(settings.SOURCES_DIR / f"feed-{place}")
        self._client = PoliteClient(delay=PAUSE)
        self._entries: dict[str, Entry] | None = None

    def close(self) -> None:
        self._client.close()
        self._cache.close()

    def list_items(self) -> Iterator[Item]:
        self._entries = self._read_entries()
        for entry in self._entries.values():
            yield Item(
                key=entry.key,
                version=entry.digest,
                name=entry.name,
                modified_at=entry.at,
                url=entry.link,
            )

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        if self._entries is None:
            self._entries = self._read_entries()
        entry = self._entries.get(item.key)
        if entry is None:
            raise ItemError("The entry left the feed before it was fetched.")
        page = self._linked_page(entry, max_bytes) if self._options.full_pages else None
        data = page or entry.page()
        if len(data) > max_bytes:
            raise ItemError(
                f"It has more than {max_bytes:,} bytes. Raise RAGSITE_MAX_UPLOAD_BYTES."
            )
        file.write_bytes(data)
        said = {"author": entry.author, "date": entry.at.isoformat() if entry.at else ""}
        return {
            "title": entry.title,
            "metadata": {name: value for name, value in said.items() if value},
        }

    def is_gone(self, key: str) -> bool:
        return False

    # --- the feed --------------------------------------------------------------------------------

    def _read_entries(self) -> dict[str, Entry]:
        with self._cache.locked():
            data, url = self._download(self._options.url)
            if is_html(data):
                named = _named_feed(data, url)
                if not named:
                    raise SourceError(
                        gettext(
                            "The page {url} does not link to a feed. Look for the address of the"
                            " feed on that site."
                        ).format(url=url),
                        is_permanent=True,
                    )
                data, url = self._download(named)
        feed = feedparser.parse(data, response_headers={"content-location": url})
        entries = [_entry(each, url) for each in feed.entries[:MAX_ENTRIES]]
        if not entries and not feed.version:
            raise SourceError(
                gettext("{url} is not an RSS or Atom feed. Check the address.").format(url=url)
            )
        return {entry.key: entry for entry in reversed(entries)}

    def _download(self, url: str) -> tuple[bytes, str]:
        """What is at `url` now, and the address after redirections."""
        known = self._cache.known(url) or Known()
        kept = self._cache.take_body(url, known.version) if known.version else None
        headers = {}
        if kept is not None:
            marks = {"If-None-Match": known.etag, "If-Modified-Since": known.modified}
            headers = {name: mark for name, mark in marks.items() if mark}
        answer = self._client.get(url, headers=headers, max_bytes=MAX_FEED_BYTES)
        if answer.status_code == _NOT_MODIFIED and kept is not None:
            self._cache.keep(url, known, kept)
            return kept, known.moved or url
        if not answer.is_success:
            raise SourceError(
                gettext("{url} answers {status}. If this continues, check the address.").format(
                    url=url, status=answer.status_code
                )
            )
        known = Known(
            version="kept",
            etag=answer.headers.get("etag", ""),
            modified=answer.headers.get("last-modified", ""),
            moved=str(answer.url),
        )
        self._cache.keep(url, known, answer.content)
        return answer.content, str(answer.url)

    # --- linked pages ----------------------------------------------------------------------------

    def _linked_page(self, entry: Entry, max_bytes: int) -> bytes | None:
        """The page behind an entry; None where it may not be read or is none, for which the feed's
        own text stands. Raises ItemError, ItemGone."""
        if urlsplit(entry.link).scheme not in {"http", "https"}:
            return None
        if not self._client.may_read(entry.link):
            return None
        answer = self._client.get(entry.link, max_bytes=max_bytes)
        if is_missing(answer):
            raise ItemGone(f"The page of {entry.name} no longer exists.")
        if not answer.is_success:
            raise ItemError(f"{entry.link} answers {answer.status_code}. It is tried again.")
        if media_type(answer) not in HTML_TYPES:
            return None
        page = read_page(answer.content, url=str(answer.url))
        return None if page.is_login or not page.digest else answer.content


def _entry(each: Any, base: str) -> Entry:
    texts = [*each.get("content", ()), *filter(None, [each.get("summary_detail")])]
    contents = [
        f"<pre>{html.escape(str(text.get('value', '')))}</pre>"
        if text.get("type") == "text/plain"
        else str(text.get("value", ""))
        for text in texts
    ]
    moment = each.get("updated_parsed") or each.get("published_parsed")
    return Entry(
        id=str(each.get("id", "")),
        title=_plain(str(each.get("title", ""))),
        author=str(each.get("author", "")),
        link=normalised(str(each.get("link", "")), base=base),
        content=max(contents, key=len, default=""),
        at=datetime.fromtimestamp(calendar.timegm(moment), UTC) if moment else None,
    )


def _plain(title: str) -> str:
    """A title, which feeds give as text or as HTML, in one line."""
    if "<" in title or "&" in title:
        title = str(document_fromstring(f"<p>{title}</p>").xpath("string()"))
    return " ".join(title.split())


def _named_feed(data: bytes, url: str) -> str:
    """The first feed that a page names; empty where there is none."""
    root = document_fromstring(data, parser=HTMLParser(no_network=True))
    for link in root.iter("link"):
        is_alternate = "alternate" in link.get("rel", "").lower().split()
        if is_alternate and link.get("type", "").lower() in _FEED_TYPES:
            return normalised(link.get("href", ""), base=url)
    return ""
