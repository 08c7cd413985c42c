"""What a page says: its links, its main text, and whether it is content. Begin with `read_page`."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

import httpx2
from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from reading.parsers import ParseError
from reading.parsers.html import parse_html
from sources.connectors.web_address import normalised, page_name

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
#: A page with a field for a password and fewer words is a login, and no page with one beside it.
_LOGIN_WORDS = 120
_MAX_LINKS = 2_000


@dataclass(frozen=True, slots=True)
class Page:
    """What a page says. `digest` is that of its main text and title, empty where it has no text;
    `canonical` the address that it gives itself, empty where that is its own."""

    links: tuple[str, ...]
    digest: str
    canonical: str
    is_indexed: bool
    is_login: bool

    @property
    def is_content(self) -> bool:
        return bool(self.digest) and self.is_indexed and not self.is_login


def media_type(answer: httpx2.Response) -> str:
    return answer.headers.get("content-type", "").partition(";")[0].strip().lower()


def read_page(data: bytes, *, url: str, robots_header: str = "") -> Page:
    """Read a page of `url`; `robots_header` is its X-Robots-Tag."""
    try:
        root = document_fromstring(data, parser=HTMLParser(no_network=True, remove_comments=True))
    except (etree.ParserError, etree.XMLSyntaxError, ValueError):
        return Page((), "", "", is_indexed=False, is_login=False)
    words = 0
    digest = ""
    try:
        parsed = parse_html(data, name=page_name(url))
        words = len(parsed.text.split())
        digest = hashlib.sha256(f"{parsed.title}\n{parsed.text}".encode()).hexdigest()[:32]
    except ParseError:
        pass  # links may still lead on
    orders = set(_robots_orders(root, robots_header))
    canonical = ""
    for link in root.iter("link"):
        if "canonical" in link.get("rel", "").lower().split():
            canonical = normalised(link.get("href", ""), base=url)
            break
    return Page(
        links=() if orders & {"nofollow", "none"} else tuple(_links(root, url)),
        digest=digest,
        canonical="" if canonical == url else canonical,
        is_indexed=not orders & {"noindex", "none"},
        is_login=words < _LOGIN_WORDS
        and any(each.get("type", "").lower() == "password" for each in root.iter("input")),
    )


def _robots_orders(root: HtmlElement, header: str) -> Iterator[str]:
    """`noindex` and its like, for all robots or for us."""
    for order in header.lower().split(","):
        who, colon, what = order.partition(":")
        if not colon:
            yield order.strip()
        elif who.strip() == "ragsite":
            yield what.strip()
    for meta in root.iter("meta"):
        if meta.get("name", "").lower() in {"robots", "ragsite"}:
            yield from (order.strip() for order in meta.get("content", "").lower().split(","))


def _links(root: HtmlElement, url: str) -> Iterator[str]:
    """Addresses that it links to, each once, in their order."""
    base = next((each.get("href", "") for each in root.iter("base")), "")
    base = normalised(base, base=url) or url
    seen: set[str] = set()
    for each in root.iter("a", "area", "frame", "iframe", "meta"):
        if each.tag == "meta":
            # A page that sends browsers on.
            is_refresh = each.get("http-equiv", "").lower() == "refresh"
            target = each.get("content", "").partition("=")[2].strip(" '\"") if is_refresh else ""
        else:
            target = each.get("href") or each.get("src") or ""
        if not target or "nofollow" in each.get("rel", "").lower().split():
            continue
        link = normalised(target, base=base)
        if link and link not in seen:
            seen.add(link)
            yield link
            if len(seen) >= _MAX_LINKS:
                return
