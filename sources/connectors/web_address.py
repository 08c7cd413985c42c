"""Addresses of the web: one of the many that a page has, the names of what is there, and which are
of a site. Begin with `normalised` and `Scope`."""

from pathlib import PurePosixPath
from typing import Annotated
from urllib.parse import unquote, urlsplit, urlunsplit

import httpx2
from pydantic import AfterValidator
from pydantic_core import PydanticCustomError

from common.stored_messages import translated_message
from documents.ingestion.sources import matches_glob, storable_name
from documents.ingestion.web_pages import GENERIC_MEDIA_TYPES, SUFFIX_BY_MEDIA_TYPE
from reading.web_fetch import FetchError, checked_url

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
        *(
            ".png",
            ".jpg",
            ".jpeg",
            ".gif",
            ".svg",
            ".webp",
            ".avif",
            ".heic",
            ".ico",
            ".bmp",
            ".tif",
        ),
        *(".tif", ".css", ".js", ".mjs", ".map", ".json", ".xml", ".rss", ".atom", ".ics", ".vcf"),
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


def _web_address(text: str) -> str:
    try:
        return str(checked_url(text if "://" in text else f"https://{text}"))
    except FetchError as error:
        raise PydanticCustomError(
            "address", "{reason}", {"reason": translated_message(str(error))}
        ) from error


#: An option: an address that begins with http:// or https://; without, the latter is meant.
WebAddress = Annotated[str, AfterValidator(_web_address)]


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


class Scope:
    """Which addresses are of the site that begins at `start`: those of its host, below its folder
    or with a path that `include` names, and none that `exclude` does. Both are globs with blanks
    between them."""

    def __init__(self, start: str, *, include: str, exclude: str, files: bool) -> None:
        self.start = start
        self._include, self._exclude, self._files = include.split(), exclude.split(), files

    def own(self, url: str) -> str:
        """The address as the site begins its own; empty for one of another host."""
        site, other = urlsplit(self.start), urlsplit(url)
        if other.netloc != site.netloc:
            return ""
        if site.scheme == other.scheme or site.port is not None:
            return url
        return urlunsplit((site.scheme, *other[1:]))

    def has(self, url: str) -> bool:
        """Whether this address of the site is one that the options choose."""
        path = url_path(url)
        if any(matches_glob(path, glob) for glob in self._exclude):
            return False
        if self._include:
            return any(matches_glob(path, glob) for glob in self._include)
        # Below the folder of the first page, which may be named without a slash at its end.
        first = url_path(self.start)
        folder = first.rpartition("/")[0] if "." in first.rpartition("/")[2] else first.rstrip("/")
        return not folder or path == folder or path.startswith(f"{folder}/")

    def takes(self, url: str) -> bool:
        """As `has`, and something is there that may be read, as far as its suffix tells."""
        is_file = url_suffix(url) in FILE_SUFFIXES
        return (self._files if is_file else may_be_page(url)) and self.has(url)
