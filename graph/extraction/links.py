"""Links, document addresses and foreign keys as mentions. Pure. Begin with
`link_mentions` and `table_mentions`.
"""

import hashlib
import posixpath
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import PurePosixPath
from urllib.parse import parse_qsl, unquote, urlencode, urljoin, urlsplit

from graph.extraction.mentions import Kind, Mention, MentionCounter, Source
from graph.extraction.normalized_names import normalize_name

MAX_LINK_CHARACTERS = 2_000
#: A form is a key in an index.
MAX_ADDRESS_CHARACTERS = 200

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_PAGES = re.compile(r"\.(?:md|mdx|markdown|mdown|mkd|rst|rest|html?|xhtml|txt|adoc|ipynb)\Z", re.I)
#: File names that stand for their folder.
_FOLDER = re.compile(r"(?:\A|(?<=/))(?:index|readme)\Z", re.I)
_PICTURES = re.compile(r"\.(?:png|jpe?g|gif|svg|webp|ico|bmp)(?:[?#].*)?\Z", re.I | re.S)
_TRACKING = re.compile(r"utm_\w+|fbclid|gclid|ref_src|mc_[ce]id", re.I)
_PORTS = {"http": ":80", "https": ":443"}


def own_addresses(source: Source) -> Iterator[tuple[str, str]]:
    """Forms under which others refer to the document, each with its original spelling."""
    forms: dict[str, str] = {}
    for written in (source.key, source.url, str(source.metadata.get("final_url") or "")):
        form = web_form(written) if _SCHEME.match(written) else path_form(written)
        if form:
            forms.setdefault(form, written)
    yield from forms.items()


def link_targets(link: str, *, source: Source) -> Iterator[str]:
    """Forms of a link's target, resolved against the document's key and URL.

    None for anchors within the document, images and other links that lead to no document.
    """
    link = link.strip()
    if not link or link[0] in "#?" or len(link) > MAX_LINK_CHARACTERS or _PICTURES.search(link):
        return
    if _SCHEME.match(link) or link.startswith("//"):
        found = [web_form(link)]
    else:
        bases = dict.fromkeys(base for base in (source.key, source.url) if base)
        path = unquote(re.split("[?#]", link, maxsplit=1)[0])
        found = []
        for base in bases:
            if not _SCHEME.match(base):
                above = posixpath.dirname(base.replace("\\", "/"))
                found.append(path_form(posixpath.join(above, path)))
                continue
            with suppress(ValueError):
                found.append(web_form(urljoin(base, link)))
    own = {form for form, _ in own_addresses(source)}
    yield from dict.fromkeys(form for form in found if form and form not in own)


def web_form(url: str) -> str:
    """`ref:example.com/guide` for `https://www.example.com/guide/index.html#setup`.

    Empty for schemes other than http(s), such as `mailto:`.
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
    page = _page_path(unquote(parts.path))
    return bounded_form(
        "ref:" + "/".join(filter(None, (host, page))) + (f"?{kept}" if kept else "")
    )


def path_form(path: str) -> str:
    """`ref:/docs/guide` for `docs/guide/README.md`; empty for what is no path."""
    page = _page_path(path.replace("\\", "/"))
    return bounded_form(f"ref:/{page}") if page and "\n" not in page else ""


def _page_path(path: str) -> str:
    """Path without suffix, `index`, dots and slashes."""
    path = posixpath.normpath(f"/{path}").lstrip("/")
    return _FOLDER.sub("", _PAGES.sub("", path)).rstrip("/")


def bounded_form(form: str) -> str:
    """The form itself, or its beginning and a hash where it is too long for an index key."""
    form = form.replace("\0", "")
    if len(form) <= MAX_ADDRESS_CHARACTERS:
        return form
    digest = hashlib.sha256(form.encode(errors="surrogatepass")).hexdigest()[:20]
    return f"{form[: MAX_ADDRESS_CHARACTERS - 21]}~{digest}"


#: Of one passage, and of one document: a list of a thousand links refers to none of them.
MAX_LINKS, MAX_DOCUMENT_LINKS = 50, 1_000
MAX_LINK_NAME = 300

_LINK = re.compile(
    r"""
    (?<!!)\[\[(?P<wiki>[^\[\]|#\n]{1,200})(?:[|#][^\[\]\n]{0,300})?\]\]
  | \]\(\s*(?:<(?P<angled>[^<>\n]{1,2000})>|(?P<target>[^\s()<>]*(?:\([^\s()<>]*\)[^\s()<>]*)*))
    (?:\s+(?:"[^"\n]*"|'[^'\n]*'|\([^)\n]*\)))?\s*\)
  | ^[ ]{0,3}\[[^\]\n]{1,300}\]:[ \t]+<?(?P<defined>[^\s<>]+)>?
  | \bhref\s*=\s*(?:"(?P<href>[^"\n]*)"|'(?P<href2>[^'\n]*)')
  | :doc:`(?:[^`<\n]*<)?(?P<doc>[^`<>\n]{1,500})>?`
  | :ref:`(?:[^`<\n]*<)?(?P<ref>[^`<>\n]{1,200})>?`
  | ^[ ]*\.\.[ ]_`?(?P<label>[^`:\n]{1,200})`?:[ \t]*(?P<labelled>\S+)?
  | `[^`<\n]{1,300}<(?P<inline>[^`<>\s]{1,2000})>`_
  | (?P<bare>\bhttps?://(?:[^\s<>"'`()\[\]{}|\\]|\([^\s<>"'`()]*\))+)
  | (?<![\w.+-])(?P<email>[\w.+-]{1,64}@[\w-]+(?:\.[\w-]+)+)
    """,
    re.VERBOSE | re.MULTILINE,
)
#: Most passages have none of these, and are passed over.
_HINT = re.compile(r"\]\(|\[\[|\]:|href|:doc:`|:ref:`|\.\. _|>`_|://|@")
_NOTES = (".md", ".markdown", ".txt", ".org")
_PUNCTUATION = ".,;:!?…"
#: Groups that a full stop may follow directly.
_UNDELIMITED = frozenset(("bare", "email"))
#: Of what is no link.
_KINDS: dict[str, Kind] = {"label": "self", "email": "text"}
_ADDRESSES = ("angled", "target", "defined", "href", "href2", "doc", "labelled", "inline", "bare")


def link_mentions(source: Source) -> Iterator[Mention]:
    """Own addresses as `self`, in the first passage; link targets as `link`."""
    if not source.passages:
        return
    tally = MentionCounter(most=MAX_LINKS)
    for own, written in own_addresses(source):
        tally.add(Mention(0, own, written[:MAX_LINK_NAME], "ref", "self"))
    # The file name of a note, if it differs from its title.
    key = PurePosixPath(source.key.replace("\\", "/"))
    stem = normalize_name(key.stem)
    if key.suffix.lower() in _NOTES and stem not in ("", normalize_name(source.title)):
        tally.add(Mention(0, stem, key.stem, "name", "self"))
    left = MAX_DOCUMENT_LINKS
    links = source.metadata.get("links")
    for link in (links if isinstance(links, list) else [])[:MAX_LINKS]:
        for target in link_targets(link, source=source) if isinstance(link, str) else ():
            tally.add(Mention(0, target, link[:MAX_LINK_NAME], "ref", "link"))
    for at, passage in enumerate(source.passages):
        if left > 0 and _HINT.search(passage.text):
            for match in _LINK.finditer(passage.text):
                for mention in _match_mentions(match, at, source):
                    tally.add(mention)
                    left -= 1
    yield from tally.mentions()


def _match_mentions(match: re.Match[str], at: int, source: Source) -> Iterator[Mention]:
    if name := (match["wiki"] or "").strip():
        yield from _link_mention(match, at, "wiki", normalize_name(name), "name")
    elif match["ref"]:
        yield from _link_mention(match, at, "ref", _label(match["ref"]), "ref")
    elif match["email"]:
        written = match["email"].rstrip(_PUNCTUATION)
        yield from _link_mention(
            match, at, "email", bounded_form(f"email:{written.lower()}"), "email"
        )
    else:
        if match["label"] and not match["labelled"] and match["label"] != "_":
            yield from _link_mention(match, at, "label", _label(match["label"]), "ref")
        for group in _ADDRESSES:
            if written := match[group]:
                link = written.rstrip(_PUNCTUATION) if group in _UNDELIMITED else written
                for target in link_targets(link, source=source):
                    yield from _link_mention(match, at, group, target, "ref")


def _link_mention(
    match: re.Match[str], at: int, group: str, found: str, type: str
) -> Iterator[Mention]:
    if found:
        written = match[group].rstrip(_PUNCTUATION) if group in _UNDELIMITED else match[group]
        start = match.start(group)
        kind = _KINDS.get(group, "link")
        yield Mention(
            at, found, written.strip()[:MAX_LINK_NAME], type, kind, 1, start, start + len(written)
        )


def _label(name: str) -> str:
    """reStructuredText labels ignore case and white space."""
    return bounded_form("ref:label:" + " ".join(name.casefold().split()))


#: Foreign keys of one table that are followed.
MAX_FOREIGN_KEYS = 200


def table_mentions(source: Source) -> Iterator[Mention]:
    """The table that a document describes, as `documents.catalogue` gives it, and tables it refers
    to.
    """
    about = source.metadata
    schema, table = about.get("schema"), about.get("table")
    if about.get("kind") != "table" or not isinstance(table, str) or not table:
        return
    if not source.passages:
        return
    own = f"{schema}.{table}" if isinstance(schema, str) and schema else table
    database = str(about.get("database") or "")
    tally = MentionCounter(most=MAX_FOREIGN_KEYS)
    tally.add(Mention(0, table_form(database, own), own, "table", "self"))
    keys = about.get("foreign_keys")
    for key in keys if isinstance(keys, list) else ():
        name = key.get("references") if isinstance(key, Mapping) else None
        if isinstance(name, str) and name:
            # At the passage that states the reference, else at the first.
            told = f"refers to {name}"
            places = ((at, each.text.find(told)) for at, each in enumerate(source.passages))
            at, start = next(((at, place) for at, place in places if place >= 0), (0, -1))
            end = start + len(told)
            span = (end - len(name), end) if start >= 0 else (0, 0)
            tally.add(Mention(at, table_form(database, name), name, "table", "link", 1, *span))
    yield from tally.mentions()


def table_form(database: str, name: str) -> str:
    """`table:shop/sales.orders`, with the database, since table names repeat."""
    return bounded_form(f"table:{database}/{name}".casefold())
