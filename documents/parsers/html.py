"""HTML: the main content as Markdown, with the page's title, language and metadata."""

import codecs
import re
from typing import Any

from lxml import etree
from lxml.html import HtmlElement, HTMLParser, document_fromstring

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Limits,
    ParsedDocument,
    ParseError,
)
from documents.parsers.html_content import main_content, remove_hidden
from documents.parsers.html_markdown import to_markdown
from documents.parsers.html_text import one_line
from documents.parsers.metadata import json_safe, language_code, readable_title
from documents.parsers.normalise import decode_text, normalise_text

_DECLARED = re.compile(rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]{2,40})", re.I)
#: Browsers read both of these labels as Windows-1252.
_ALIASES = {"iso-8859-1": "cp1252", "us-ascii": "cp1252"}
#: Python's own, of names and of programs: no page is in them, and some take quadratic time.
_NO_ENCODINGS = frozenset(
    {"idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7"}
)
#: Names of <meta> elements, in the order of preference, for each key of the metadata.
_META = {
    "description": ("description", "og:description", "dc.description"),
    "author": ("author", "article:author", "dc.creator"),
    "date": ("article:published_time", "date", "dc.date", "dcterms.date", "article:modified_time"),
    "keywords": ("keywords",),
    "site": ("og:site_name",),
}


#: Characters that a tree may hold but not be given.
_NO_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class HtmlParser:
    """Web pages, saved or fetched; markup as broken as browsers accept.

    `whole`: nothing stands around the document, as in a book, so nothing is left out.
    """

    media_types: tuple[str, ...] = ("text/html", "application/xhtml+xml")
    suffixes: tuple[str, ...] = (".html", ".htm", ".xhtml")

    def __init__(self, *, whole: bool = False) -> None:
        self._whole = whole

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        root = _tree(_decode_html(data))
        title = _title(root) or readable_title(name)
        metadata, language = _metadata(root), language_code(root.get("lang"))
        remove_hidden(root)
        body = _body(root)
        text, headings = to_markdown(body if self._whole else main_content(body))
        if not text.strip():
            raise ParseError(
                "no_text",
                "The page has no text, perhaps a script fills it. Save it from the browser as "
                "a complete page.",
            )
        return ParsedDocument(
            text=text,
            media_type="text/html",
            title=title,
            rendering="markdown",
            headings=headings,
            metadata=metadata,
            language=language,
        )


def _decode_html(data: bytes) -> str:
    declared = _DECLARED.search(data[:4096])
    if declared and not data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        label = declared[1].decode("ascii", "replace").lower()
        try:
            encoding = codecs.lookup(_ALIASES.get(label, label)).name
            if encoding not in _NO_ENCODINGS:
                return normalise_text(data.decode(encoding))
        except (LookupError, UnicodeError, ValueError):
            pass  # a page may lie about its encoding: its bytes decide then
    return decode_text(data)


def _tree(text: str) -> HtmlElement:
    if not text.strip():
        raise ParseError("empty", "The file has no text. Check that it was saved.")
    parser = HTMLParser(
        encoding="utf-8", huge_tree=True, remove_comments=True, remove_pis=True, no_network=True
    )
    try:
        root = document_fromstring(_NO_XML.sub(" ", text).encode(), parser=parser)
    except etree.ParserError as error:
        raise ParseError("no_text", "The page has no text. Check that it was saved.") from error
    # libxml2 drops what is deeper, and only its log tells.
    if any(entry.type_name == "ERR_RESOURCE_LIMIT" for entry in parser.error_log):
        raise ParseError(
            "malformed",
            "The elements are nested too deep to be read. Save the page as plain text.",
        )
    return root


def _body(root: HtmlElement) -> HtmlElement:
    body = root.find("body")
    return root if body is None else body


def _title(root: HtmlElement) -> str:
    candidates = (root.find("head/title"), root.find(".//h1"))
    return next(
        (words for node in candidates if node is not None and (words := one_line(node))), ""
    )


def _metadata(root: HtmlElement) -> dict[str, Any]:
    found: dict[str, str] = {}
    for node in root.iter("meta"):
        label = (node.get("name") or node.get("property") or "").lower()
        if content := " ".join(node.get("content", "").split()):
            found.setdefault(label, content)
    chosen = {
        key: next((found[label] for label in labels if label in found), "")
        for key, labels in _META.items()
    }
    values: dict[str, Any] = json_safe({key: value for key, value in chosen.items() if value})
    return values
