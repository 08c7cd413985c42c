"""The pages that a site names itself (sitemaps.org): sitemaps, indexes of them, packed or not.
Begin with `read_sitemaps`."""

import zlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from io import BytesIO

from lxml import etree

from common.translation import format_number, gettext
from reading.parsers.registry import is_html
from sources.connectors.base import SourceError
from sources.connectors.polite import PoliteClient, is_missing, needs_login

MAX_SITEMAPS = 200
#: Unpacked, as the protocol bounds it.
MAX_SITEMAP_BYTES = 50 * 1024 * 1024
#: More pages than this with one and the same time: it is that of the sitemap, not of the pages.
_SAME_TIMES = 10
_GZIP = b"\x1f\x8b"


@dataclass(frozen=True, slots=True)
class SitemapEntry:
    """A page. `lastmod` changes when the page does; empty where the sitemap does not say so, or
    says it of all pages alike."""

    url: str
    lastmod: str


def read_sitemaps(
    client: PoliteClient, addresses: list[str], *, max_pages: int
) -> list[SitemapEntry] | None:
    """The pages of all sitemaps at `addresses`, at most about `max_pages`; None where there is no
    sitemap. Raises SourceError where one is there and cannot be read whole: what is missing would
    be taken for gone."""
    waiting, seen = list(addresses), set(addresses)
    pages: dict[str, str] = {}
    is_there = False
    read = 0
    while waiting and read < MAX_SITEMAPS and len(pages) < max_pages:
        url = waiting.pop(0)
        read += 1
        data = _download(client, url)
        if data is None:
            continue
        is_there = True
        for is_index, location, lastmod in _entries(data, url):
            if is_index:
                if location not in seen:
                    seen.add(location)
                    waiting.append(location)
            else:
                pages.setdefault(location, lastmod)
                if len(pages) >= max_pages:
                    break
    if not is_there:
        return None
    counts = Counter(filter(None, pages.values()))
    latest = (datetime.now(UTC) + timedelta(days=1)).isoformat()
    return [
        SitemapEntry(url, lastmod if counts[lastmod] <= _SAME_TIMES and lastmod < latest else "")
        for url, lastmod in pages.items()
    ]


def _download(client: PoliteClient, url: str) -> bytes | None:
    """The unpacked sitemap; None where there is none."""
    answer = client.get(url, max_bytes=MAX_SITEMAP_BYTES)
    if is_missing(answer) or needs_login(answer):
        return None
    if not answer.is_success:
        raise SourceError(
            gettext("The sitemap {url} answers {status}. The next run tries again.").format(
                url=url, status=answer.status_code
            )
        )
    data = answer.content
    if data.startswith(_GZIP):
        unpacker = zlib.decompressobj(wbits=zlib.MAX_WBITS | 16)
        try:
            data = unpacker.decompress(data, MAX_SITEMAP_BYTES)
        except zlib.error as error:
            raise SourceError(
                gettext("The sitemap {url} cannot be decompressed: {error}.").format(
                    url=url, error=error
                )
            ) from error
        if unpacker.unconsumed_tail:
            raise SourceError(
                gettext("The sitemap {url} has more than {limit} bytes.").format(
                    url=url, limit=format_number(MAX_SITEMAP_BYTES)
                )
            )
        if not unpacker.eof:
            raise SourceError(
                gettext("The sitemap {url} arrived incomplete. The next run tries again.").format(
                    url=url
                )
            )
    # Some sites answer every address with their first page.
    return None if is_html(data) else data


def _entries(data: bytes, url: str) -> Iterator[tuple[bool, str, str]]:
    """(whether it is a sitemap of an index, address, lastmod), as they come."""
    reader = etree.iterparse(
        BytesIO(data),
        events=("end",),
        tag=("{*}url", "{*}sitemap"),
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
    )
    try:
        for _, element in reader:
            location = (element.findtext("{*}loc") or "").strip()
            lastmod = (element.findtext("{*}lastmod") or "").strip()
            if location:
                yield etree.QName(element).localname == "sitemap", location, lastmod[:40]
            element.clear()
    except etree.XMLSyntaxError as error:
        raise SourceError(
            gettext(
                "The sitemap {url} is malformed: {error}. Enter “none” as the sitemap to follow"
                " links instead."
            ).format(url=url, error=error)
        ) from error
