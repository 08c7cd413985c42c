"""The one form of an address, so that a link meets the document that it leads to. Pure."""

import hashlib
import posixpath
import re
from collections.abc import Iterator
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

from graph.extraction.found import Source

LONGEST = 2_000
#: A form is a key in an index.
MOST_CHARACTERS = 200

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PAGES = re.compile(r"\.(?:md|mdx|markdown|mdown|mkd|rst|rest|html?|xhtml|txt|adoc|ipynb)\Z", re.I)
#: What stands for the folder that it is in.
_FOLDER = re.compile(r"(?:\A|(?<=/))(?:index|readme)\Z", re.I)
_PICTURES = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|bmp)(?:[?#].*)?\Z", re.I | re.S)
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|ref_src|mc_[ce]id", re.I)
_PORTS = {"http": ":80", "https": ":443"}


def own_addresses(source: Source) -> Iterator[tuple[str, str]]:
    """Forms under which others refer to the document, each with how it is written."""
    forms: dict[str, str] = {}
    for written in (source.key, source.url, str(source.metadata.get("final_url") or "")):
        form = web_form(written) if _SCHEME.match(written) else path_form(written)
        if form:
            forms.setdefault(form, written)
    yield from forms.items()


def targets(link: str, *, source: Source) -> Iterator[str]:
    """Forms of where a link of the document leads, seen from its key and from its address.

    None for a place in the document itself, and for what is no address of a document.
    """
    link = link.strip()
    if not link or link[0] in "#?" or len(link) > LONGEST or _PICTURES.search(link):
        return
    if _SCHEME.match(link) or link.startswith("//"):
        found = [web_form(link)]
    else:
        bases = dict.fromkeys(base for base in (source.key, source.url) if base)
        found = [_resolved(link, base) for base in bases]
    own = {form for form, _ in own_addresses(source)}
    yield from dict.fromkeys(form for form in found if form and form not in own)


def web_form(url: str) -> str:
    """`ref:example.com/guide` for `https://www.example.com/guide/index.html#setup`.

    Empty for what no browser asks a server for, such as `mailto:`.
    """
    try:
        parts = urlsplit(url if _SCHEME.match(url) else f"https:{url}")
        query = parse_qsl(parts.query, keep_blank_values=True)
    except ValueError:
        return ""
    if parts.scheme.lower() not in _PORTS or not parts.netloc:
        return ""
    host = parts.netloc.rpartition("@")[2].lower()
    host = host.removesuffix(_PORTS[parts.scheme.lower()]).removeprefix("www.")
    kept = urlencode([(name, value) for name, value in query if not _TRACKING.fullmatch(name)])
    page = _page(unquote(parts.path))
    return bounded("ref:" + "/".join(filter(None, (host, page))) + (f"?{kept}" if kept else ""))


def path_form(path: str) -> str:
    """`ref:/docs/guide` for `docs/guide/README.md`; empty for what is no path."""
    page = _page(path.replace("\\", "/"))
    return bounded(f"ref:/{page}") if page and "\n" not in page else ""


def _resolved(link: str, base: str) -> str:
    if _SCHEME.match(base):
        try:
            return web_form(urljoin(base, link))
        except ValueError:
            return ""
    path = unquote(re.split("[?#]", link, maxsplit=1)[0])
    return path_form(posixpath.join(posixpath.dirname(base.replace("\\", "/")), path))


def _page(path: str) -> str:
    """Without what says nothing of which page it is: its suffix, `index`, dots and slashes."""
    path = posixpath.normpath(f"/{path}").lstrip("/")
    return _FOLDER.sub("", _PAGES.sub("", path)).rstrip("/")


def bounded(form: str) -> str:
    """The form itself, or its beginning and a digest where it is too long to be a key."""
    form = form.replace("\0", "")
    if len(form) <= MOST_CHARACTERS:
        return form
    digest = hashlib.sha256(form.encode(errors="surrogatepass")).hexdigest()[:20]
    return f"{form[: MOST_CHARACTERS - 21]}~{digest}"
