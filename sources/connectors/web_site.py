"""The pages of a web site, by its sitemap or by following links. Begin with `WebSite`."""

import hashlib
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import urljoin, urlsplit

import httpx2
from django.conf import settings
from pydantic import Field

from common.options import RARE
from common.translation import gettext, gettext_noop
from documents.ingestion.web_pages import TEXT_MEDIA_TYPES, as_utf8
from sources.connectors.base import (
    Connector,
    ConnectorOptions,
    Item,
    ItemError,
    ItemGone,
    SourceError,
    Unfinished,
)
from sources.connectors.http import http_date
from sources.connectors.polite import PoliteClient, TooManyRequests, is_missing, needs_login
from sources.connectors.sitemaps import SitemapEntry, read_sitemaps
from sources.connectors.web_address import (
    FILE_SUFFIXES,
    Scope,
    WebAddress,
    file_name,
    normalised,
    page_name,
    url_suffix,
)
from sources.connectors.web_cache import Known, WebCache
from sources.connectors.web_page import HTML_TYPES, Page, media_type, read_page

#: A listing goes on for so long, then others have their turn.
LISTING_SECONDS = 20.0
MAX_PAGE_BYTES = 10 * 1024 * 1024
MAX_REDIRECTS = 5
#: Pages in a row that the server fails for: it is down, and nothing is told from the rest.
MAX_FAILURES = 5
#: A calendar without end: addresses that differ only in their parameters, and folders that repeat.
MAX_QUERIES = 100
MAX_REPEATED_FOLDERS = 3
_MISSING_PAGE = "ragsite-asks-how-missing-pages-look"
_PERMANENT_REDIRECTS = frozenset({301, 308})
_NOT_MODIFIED = 304
#: The version of a page that could not be read: `fetch` says why.
_UNREAD = "unread"


class WebSiteOptions(ConnectorOptions):
    url: WebAddress = Field(
        title=gettext_noop("Address"),
        description=gettext_noop(
            "The start page, such as https://example.org/handbook/. Pages below it are read."
        ),
    )
    sitemap: str = Field(
        default="",
        title=gettext_noop("Sitemap"),
        description=gettext_noop(
            "Empty: the sitemap of the site, or its links if it has none. none: always"
            " follow links."
        ),
        json_schema_extra=RARE,
    )
    depth: int = Field(
        default=5,
        ge=0,
        le=100,
        title=gettext_noop("Link depth"),
        description=gettext_noop(
            "The number of links from the first page. Used without a sitemap."
        ),
        json_schema_extra=RARE,
    )
    max_pages: int = Field(
        default=1000,
        ge=1,
        le=100_000,
        title=gettext_noop("Maximum number of pages"),
        description=gettext_noop("Including files."),
        json_schema_extra=RARE,
    )
    include: str = Field(
        default="",
        title=gettext_noop("Included paths"),
        description=gettext_noop(
            "Such as handbook/** blog/**. Empty: all paths below the address."
        ),
        json_schema_extra=RARE,
    )
    exclude: str = Field(
        default="",
        title=gettext_noop("Excluded paths"),
        description=gettext_noop("Such as **/tag/** archive/**."),
        json_schema_extra=RARE,
    )
    files: bool = Field(
        default=True, title=gettext_noop("Include linked PDFs, Office files and text files")
    )
    delay: float = Field(
        default=0.5,
        ge=0,
        le=60,
        title=gettext_noop("Pause"),
        description=gettext_noop("Seconds between two requests."),
        json_schema_extra=RARE,
    )


class WebSite(Connector):
    """Reads pages of one host that robots.txt allows, one at a time.

    A page is known by its address without fragment and tracking; where it names a canonical one,
    by that. Its version is the hash of its main text, so that other advertisements are no change.
    Pages are asked whether they changed by ETag and Last-Modified (`WebCache`), and not at all
    where a sitemap says that they did not.
    """

    kind = "web"
    label = gettext_noop("Web site")
    usual_schedule = "1440"
    Options: ClassVar[type[ConnectorOptions]] = WebSiteOptions

    def __init__(self, options: WebSiteOptions) -> None:
        self._options = options
        self._scope = Scope(
            normalised(options.url),
            include=options.include,
            exclude=options.exclude,
            files=options.files,
        )
        place = hashlib.sha256(options.model_dump_json(exclude={"delay"}).encode()).hexdigest()[:24]
        self._cache = WebCache(settings.SOURCES_DIR / f"web-{place}")
        self._client = PoliteClient(delay=options.delay)
        self._queued: set[str] = set()
        self._by_path: Counter[str] = Counter()
        self._failures = 0
        self._is_alive: bool | None = None

    def close(self) -> None:
        self._client.close()
        self._cache.close()

    # --- listing ---------------------------------------------------------------------------------

    def list_items(self) -> Iterator[Item]:
        with self._cache.locked():
            if not self._cache.resume():
                self._begin()
            self._queued = set(self._cache.queued())
            self._by_path = Counter(url.partition("?")[0] for url in self._queued)
            self._scope.start = self._cache.state("start")
            yield from self._crawl()
            self._cache.finish()

    def _begin(self) -> None:
        """A new crawl: where it starts, and the first pages."""
        self._cache.begin()
        self._queued.clear()
        self._by_path.clear()
        start, page = self._read_start()
        self._scope.start = start
        entries = self._sitemap_entries()
        if entries:
            for entry in entries:
                self._add(normalised(entry.url), depth=self._options.depth, lastmod=entry.lastmod)
        if not self._queued:
            if page is None:
                raise SourceError(
                    gettext("There is no page at {start}. Check the address.").format(start=start)
                )
            self._cache.enqueue(start, depth=0)
        self._cache.set_state("start", start)
        missing = self._missing_page_digest()
        if missing and page is not None and missing == page.digest:
            raise SourceError(
                gettext(
                    "{start} answers every address with the same page. It may be under"
                    " maintenance, or built by scripts, in which case its pages cannot be read."
                ).format(start=start)
            )
        self._cache.set_state("missing_page", missing)
        self._cache.set_state("touched_at", repr(time.time()))

    def _read_start(self) -> tuple[str, Page | None]:
        """Where the first page is, after all redirections, and what it says; None without one. The
        site is that where the redirections end."""
        url = normalised(self._options.url)
        for _ in range(MAX_REDIRECTS + 1):
            if not self._client.may_read(url):
                raise SourceError(
                    gettext(
                        "robots.txt of {hostname} forbids robots to read {url}. Ask the operator"
                        " of that site to allow “ragsite”."
                    ).format(hostname=urlsplit(url).hostname, url=url),
                    is_permanent=True,
                )
            answer = self._get(url)
            if not answer.has_redirect_location:
                break
            url = normalised(answer.headers["location"], base=url)
            if not url:
                raise SourceError(
                    gettext("{url} redirects to no address. Check it.").format(
                        url=self._options.url
                    )
                )
        else:
            raise SourceError(
                gettext("{url} redirects in a circle. Check the address.").format(
                    url=self._options.url
                )
            )
        if needs_login(answer):
            raise SourceError(
                gettext(
                    "{url} is not public (it answers {status}). Pages behind a login cannot be"
                    " read."
                ).format(url=url, status=answer.status_code),
                is_permanent=True,
            )
        if answer.status_code >= 500:
            raise SourceError(
                gettext("{url} answers {status}. The next run tries again.").format(
                    url=url, status=answer.status_code
                )
            )
        is_page = answer.is_success and media_type(answer) in HTML_TYPES
        if answer.is_success and not is_page:
            return url, Page((), "", "", is_indexed=True, is_login=False)
        return url, read_page(answer.content, url=url) if is_page else None

    def _sitemap_entries(self) -> list[SitemapEntry]:
        chosen = self._options.sitemap
        if chosen.lower() == "none":
            return []
        if chosen:
            addresses = [urljoin(self._scope.start, chosen)]
        else:
            own = urljoin(self._scope.start, "/sitemap.xml")
            addresses = list(self._client.robots(self._scope.start).sitemaps) or [own]
        bound = 20 * self._options.max_pages  # of which some are of other folders
        entries = read_sitemaps(self._client, addresses, max_pages=bound)
        if chosen and entries is None:
            raise SourceError(
                gettext("There is no sitemap at {address}. Check the address.").format(
                    address=addresses[0]
                )
            )
        self._cache.set_state("sitemap", addresses[0] if entries else "")
        return entries or []

    def _missing_page_digest(self) -> str:
        """What a site says that has no 404: such pages are no content. Empty for others."""
        answer = self._get(urljoin(self._scope.start, _MISSING_PAGE))
        if not answer.is_success or media_type(answer) not in HTML_TYPES:
            return ""
        return read_page(answer.content, url=self._scope.start).digest

    def _crawl(self) -> Iterator[Item]:
        end: float | None = None
        named: set[str] = set()
        aliases: list[tuple[str, Item]] = []
        for url, depth, lastmod, is_done in self._cache.steps():
            if not is_done:
                # From the first visit on: however much was listed before, it gets on.
                if end is not None and time.monotonic() > end:
                    raise Unfinished(len(named))
                end = end or time.monotonic() + LISTING_SECONDS
                self._visit(url, depth, lastmod)
                self._cache.done(url)
            known = self._cache.known(url) or Known()
            if not (known.version or known.error) or not self._scope.has(url):
                continue
            item = Item(
                key=url,
                version=known.version or _UNREAD,
                name=known.name or page_name(url),
                size=known.size,
                modified_at=http_date(known.modified),
                url=url,
            )
            if known.alias:
                aliases.append((known.alias, item))
            else:
                named.add(url)
                yield item
        # Of pages that cannot be read at the address that they give themselves.
        for alias, item in aliases:
            if alias not in named:
                named.add(alias)
                yield item
        if self._cache.state("is_cut"):
            self.note = (
                f"It has more than {self._options.max_pages:,} pages; the others are left out."
                " Allow more, or choose paths."
            )
        elif not named:
            self.note = "No page has text without running scripts or logging in."

    # --- one page --------------------------------------------------------------------------------

    def _visit(self, url: str, depth: int, lastmod: str) -> None:
        """Look at an address, and enqueue what it links to."""
        before = self._cache.known(url) or Known()
        if before.is_same(lastmod):
            self._follow(before.links, depth)
            return
        known = Known(was=before.version or before.was, lastmod=lastmod)
        body = None
        if self._client.may_read(url):
            try:
                answer = self._get(url, before)
            except TooManyRequests:
                raise
            except SourceError as error:
                if error.is_permanent:
                    raise
                self._fail(url, before, depth, str(error))
                return
            if answer.status_code >= 500:
                reason = f"The server answers {answer.status_code} for it."
                self._fail(url, before, depth, reason)
                return
            self._failures = 0
            if answer.status_code == _NOT_MODIFIED and before.version:
                known = before
                known.lastmod = lastmod
            elif answer.has_redirect_location:
                target = normalised(answer.headers["location"], base=url)
                self._add(target, depth=depth, lastmod=lastmod)
                known.moved = target if answer.status_code in _PERMANENT_REDIRECTS else ""
            elif answer.status_code == httpx2.codes.OK:
                body = self._describe(known, url, answer, depth)
        self._follow(known.links, depth)
        self._cache.keep(url, known, body)

    def _describe(
        self, known: Known, url: str, answer: httpx2.Response, depth: int
    ) -> bytes | None:
        """Fill `known` from what came; returns the bytes, where they were read."""
        headers = answer.headers
        known.etag = headers.get("etag", "")
        known.modified = headers.get("last-modified", "")
        kind = media_type(answer)
        if headers.get("content-encoding", "identity").strip().lower() not in {"", "identity"}:
            known.error = "The server sends it compressed without being asked."
            return None
        if kind in HTML_TYPES:
            robots = headers.get("x-robots-tag", "")
            page = read_page(answer.content, url=url, robots_header=robots)
            known.links = [] if page.is_login else list(page.links)
            if not page.is_content or page.digest == self._cache.state("missing_page"):
                return None
            known.version, known.name = page.digest, page_name(url)
            known.size = len(answer.content)
            canonical = self._scope.own(page.canonical)
            if canonical and canonical != url:
                self._add(canonical, depth=depth)
                known.alias = canonical
            return answer.content
        known.name = file_name(url, kind) if self._options.files else ""
        if not known.name:
            return None
        length = headers.get("content-length", "")
        known.size = int(length) if length.isdecimal() else None
        if known.etag or known.modified:
            known.version = known.etag.removeprefix("W/") or f"{known.modified} {length}"
            return None
        known.version = hashlib.sha256(answer.content).hexdigest()[:32]
        return as_utf8(answer.content, media_type=kind, charset=answer.charset_encoding or "")

    def _get(self, url: str, before: Known | None = None) -> httpx2.Response:
        """Without following a redirection, whose target is an address of its own. Files with a mark
        of their version are left to `fetch`."""
        headers = {}
        if before is not None and before.version:
            if before.etag:
                headers["If-None-Match"] = before.etag
            if before.modified:
                headers["If-Modified-Since"] = before.modified

        def wants_body(answer: httpx2.Response) -> bool:
            if not answer.is_success or media_type(answer) in HTML_TYPES:
                return True
            is_marked = "etag" in answer.headers or "last-modified" in answer.headers
            return not is_marked and bool(file_name(url, media_type(answer)))

        return self._client.get(
            url,
            headers=headers,
            follow_redirects=False,
            max_bytes=settings.MAX_UPLOAD_BYTES
            if url_suffix(url) in FILE_SUFFIXES
            else MAX_PAGE_BYTES,
            wants_body=wants_body,
        )

    def _fail(self, url: str, before: Known, depth: int, reason: str) -> None:
        """A page that could not be read now stays as it was; several in a row are a site that is
        down."""
        self._failures += 1
        if self._failures >= MAX_FAILURES:
            raise SourceError(
                gettext("{failures} pages in a row failed. {reason}").format(
                    failures=MAX_FAILURES, reason=reason
                )
            )
        if before.version:
            self._follow(before.links, depth)
        else:
            self._cache.keep(url, Known(error=reason, was=before.was))

    def _follow(self, links: list[str] | None, depth: int) -> None:
        for link in links or ():
            if url_suffix(link) in FILE_SUFFIXES:
                self._add(link, depth=depth)
            elif depth < self._options.depth:
                self._add(link, depth=depth + 1)

    def _add(self, url: str, *, depth: int, lastmod: str = "") -> None:
        """Enqueue a normalised address if it is one of the site that is wanted, and no trap."""
        url = self._scope.own(url)
        if not url or url in self._queued or not self._scope.takes(url):
            return
        path = url.partition("?")[0]
        folders = Counter(filter(None, urlsplit(url).path.split("/")))
        if self._by_path[path] >= MAX_QUERIES or max(folders.values(), default=0) > (
            MAX_REPEATED_FOLDERS
        ):
            return
        if len(self._queued) >= self._options.max_pages:
            self._cache.set_state("is_cut", "yes")
            return
        self._queued.add(url)
        self._by_path[path] += 1
        self._cache.enqueue(url, depth=depth, lastmod=lastmod)

    # --- fetching --------------------------------------------------------------------------------

    def fetch(self, item: Item, file: Path, *, max_bytes: int) -> dict[str, Any]:
        body = self._cache.take_body(item.key, item.version)
        if body is not None and len(body) <= max_bytes:
            file.write_bytes(body)
            return {}
        self._client.wait(item.key)
        try:
            answer = self._client.http.download(
                item.key, file, max_bytes=max_bytes, follow_redirects=False
            )
        except SourceError as error:
            if error.is_permanent or not self._site_answers():
                raise
            raise ItemError(str(error)) from error
        if answer.status_code == httpx2.codes.TOO_MANY_REQUESTS:
            raise SourceError(
                gettext("The site limits the rate of requests. The source continues later.")
            )
        if is_missing(answer):
            raise ItemGone(f"{item.name} is there no more.")
        if answer.has_redirect_location:
            raise ItemError("It moved after it was listed. The next run finds it.")
        if needs_login(answer):
            raise ItemError("It is no longer public. Exclude its path.")
        if answer.status_code != httpx2.codes.OK:
            raise ItemError(
                f"The server answers {answer.status_code} for it. The next run tries again."
            )
        kind = media_type(answer)
        if kind in HTML_TYPES:
            page = read_page(
                file.read_bytes(),
                url=item.key,
                robots_header=answer.headers.get("x-robots-tag", ""),
            )
            if not page.is_content:
                raise ItemError("It has no text without running scripts or logging in.")
        elif kind in TEXT_MEDIA_TYPES:
            charset = answer.charset_encoding or ""
            file.write_bytes(as_utf8(file.read_bytes(), media_type=kind, charset=charset))
        return {}

    # --- deleting --------------------------------------------------------------------------------

    def is_gone(self, key: str) -> bool:
        self._scope.start = self._cache.state("start") or self._scope.start
        if self._scope.own(key) and not self._scope.has(key):
            return True  # the options leave it out now
        try:
            if not self._site_answers() or not self._client.may_read(key):
                return False
            answer = self._get(key)
        except SourceError:
            return False
        return is_missing(answer) or self._has_left(key, answer)

    def _has_left(self, key: str, answer: httpx2.Response) -> bool:
        """Whether a page asks not to be found, or is at another address now. That only if the same
        text is there: a site that is being mended leads all pages to one."""
        elsewhere = ""
        if answer.status_code in _PERMANENT_REDIRECTS and answer.has_redirect_location:
            elsewhere = normalised(answer.headers["location"], base=key)
        elif answer.is_success and media_type(answer) in HTML_TYPES:
            robots = answer.headers.get("x-robots-tag", "")
            page = read_page(answer.content, url=key, robots_header=robots)
            if not page.is_indexed:
                return True
            elsewhere = page.canonical
        known = self._cache.known(key) or Known()
        elsewhere = self._scope.own(elsewhere)
        there = self._cache.known(elsewhere) if elsewhere not in {"", key} else None
        return (
            there is not None
            and bool(there.version)
            and there.version == (known.version or known.was)
        )

    def _site_answers(self) -> bool:
        """Whether the first page, or the sitemap, is there: a server that has lost its files says
        404 to all."""
        if self._is_alive is None:
            self._is_alive = False
            for url in filter(None, (self._scope.start, self._cache.state("sitemap"))):
                with suppress(SourceError):
                    self._is_alive = self._client.get(url).is_success
                if self._is_alive:
                    break
        return self._is_alive
