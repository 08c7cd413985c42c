"""Addresses of pages, and what a page says: its links, its main text, and whether it is content.
Begin with `read_page`; `normalised` makes one address of the many that a page has."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2
from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from documents.ingestion.sources import storable_name
from documents.ingestion.web_pages import GENERIC_MEDIA_TYPES, SUFFIX_BY_MEDIA_TYPE
from documents.parsers import ParseError
from documents.parsers.html import parse_html
from documents.web_fetch import FetchError, checked_url

HTML_TYPES = frozenset({"text/html", "application/xhtml+xml"})
#: Files that are taken besides pages, by their suffix or the type that the server gives.
FILE_SUFFIXES = frozenset(
    {
        *(".pdf", ".docx", ".pptx", ".xlsx", ".odt", ".ods", ".odp", ".rtf", ".epub"),
        *(".md", ".rst", ".txt", ".csv"),
    }
)
_SUFFIXES = {
    **SUFFIX_BY_MEDIA_TYPE,
    "application/rtf": ".rtf",
    "text/rtf": ".rtf",
    "application/vnd.oasis.opendocument.text": ".odt",
    "application/vnd.oasis.opendocument.spreadsheet": ".ods",
    "application/vnd.oasis.opendocument.presentation": ".odp",
}
#: Suffixes of pages. What has another one, and is no file of those above, is never asked for.
_PAGE_SUFFIXES = frozenset(
    {"", ".html", ".htm", ".xhtml", ".php", ".asp", ".aspx", ".jsp", ".jspx", ".cgi", ".shtml"}
)
_OTHER_SUFFIXES = frozenset(
    {
        *(".png", ".jpg", ".jpeg", ".gif", ".svg", ".webp", ".avif", ".ico", ".bmp", ".tif"),
        *(".css", ".js", ".mjs", ".map", ".json", ".xml", ".rss", ".atom", ".ics", ".vcf"),
        *(".woff", ".woff2", ".ttf", ".eot", ".otf", ".mp3", ".mp4", ".m4a", ".webm", ".ogg"),
        *(".mov", ".avi", ".wav", ".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".tar"),
        *(".exe", ".msi", ".dmg", ".iso", ".apk", ".deb", ".rpm", ".jar", ".bin", ".whl", ".sig"),
    }
)
#: Parameters that tell where a visitor came from, and change nothing of the page.
_TRACKING = frozenset(
    {
        *("fbclid", "gclid", "gclsrc", "dclid", "gbraid", "wbraid", "msclkid", "yclid", "twclid"),
        *("igshid", "mc_cid", "mc_eid", "_ga", "_gl", "_hsenc", "_hsmi", "mkt_tok", "ref_src"),
        *("phpsessid", "jsessionid", "sessionid", "sid"),
    }
)
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


def normalised(url: str, *, base: str = "") -> str:
    """The address without fragment, tracking and session parameters; empty for what is none."""
    try:
        parts = urlsplit(str(httpx2.URL(base).join(url.strip())) if base else url.strip())
        query = "&".join(
            each
            for each in parts.query.split("&")
            if each
            and (name := each.partition("=")[0].lower()) not in _TRACKING
            and not name.startswith("utm_")
        )
        path = parts.path.partition(";jsessionid=")[0]
        return str(checked_url(urlunsplit((parts.scheme, parts.netloc, path, query, ""))))
    except (FetchError, httpx2.InvalidURL, ValueError, UnicodeError):
        return ""


def url_path(url: str) -> str:
    """As people read it, without the first slash: globs are matched against it."""
    return unquote(urlsplit(url).path, errors="replace").lstrip("/")


def url_suffix(url: str) -> str:
    return PurePosixPath(urlsplit(url).path).suffix.lower()


def may_be_page(url: str) -> bool:
    """Whether a page may be there, as far as its suffix tells: `/2.0` and `/node.js` have one."""
    suffix = url_suffix(url)
    return suffix in _PAGE_SUFFIXES or suffix not in _OTHER_SUFFIXES | FILE_SUFFIXES


def page_name(url: str) -> str:
    """The path of a page with the suffix by which it is read: `docs/index.html`."""
    parts = urlsplit(url)
    name = url_path(url)
    if not name or name.endswith("/"):
        name += "index"
    if parts.query:
        name = f"{name}?{unquote(parts.query, errors='replace')}"
    return storable_name(name if name.lower().endswith((".html", ".htm")) else f"{name}.html")


def file_name(url: str, media_type: str) -> str:
    """The path of a file with a suffix of one of FILE_SUFFIXES; empty where it is no such file."""
    name = url_path(url)
    suffix = _SUFFIXES.get(media_type, "")
    if not suffix and media_type in GENERIC_MEDIA_TYPES:
        suffix = url_suffix(url)
    if suffix not in FILE_SUFFIXES:
        return ""
    return storable_name(name if name.lower().endswith(suffix) else f"{name or 'file'}{suffix}")


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
