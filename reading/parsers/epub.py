"""EPUB: the chapters of a book, which are web pages, in reading order."""

import posixpath
from collections.abc import Mapping
from dataclasses import replace
from urllib.parse import unquote

from reading.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from reading.parsers.html import parse_html
from reading.parsers.office_package import (
    Element,
    local_name,
    office_document,
    read_properties,
    read_xml,
)
from reading.parsers.zip_archive import normalise_part_name, open_zip

MEDIA_TYPE = "application/epub+zip"

_CONTAINER = "meta-inf/container.xml"
_ENCRYPTION = "meta-inf/encryption.xml"
_PAGE_MEDIA_TYPES = frozenset({"application/xhtml+xml", "text/html"})
_PROPERTIES = {
    "title": "title",
    "creator": "author",
    "language": "language",
    "subject": "subject",
    "description": "description",
    "publisher": "publisher",
    "date": "date",
}


def _readable(items: Mapping[str | None, Element], key: str | None) -> Element | None:
    """The item, or the first web page among those that stand in for it."""
    for _ in range(len(items)):
        item = items.get(key)
        if item is None or item.get("media-type") in _PAGE_MEDIA_TYPES:
            return item
        key = item.get("fallback")
    return None


def parse_epub(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Books without copy protection. Table of contents and navigation pages are left out."""
    with open_zip(data, limits) as archive:
        files = (
            node for node in read_xml(archive, _CONTAINER).iter() if local_name(node) == "rootfile"
        )
        package = normalise_part_name(next((node.get("full-path", "") for node in files), ""))
        root = read_xml(archive, package)
        # Encrypted fonts do not matter, chapters do.
        ciphers = read_xml(archive, _ENCRYPTION).iter() if _ENCRYPTION in archive else ()
        locked = {
            normalise_part_name(node.get("URI", ""))
            for node in ciphers
            if local_name(node) == "CipherReference"
        }
        items = {node.get("id"): node for node in root.iter() if local_name(node) == "item"}
        spine = (_readable(items, node.get("idref")) for node in root.iter("{*}itemref"))
        chapters = dict.fromkeys(
            normalise_part_name(
                posixpath.normpath(
                    posixpath.join(posixpath.dirname(package), unquote(item.get("href", "")))
                )
            )
            for item in spine
            if item is not None and "nav" not in item.get("properties", "").split()
        )
        texts: list[str] = []
        headings: list[Heading] = []
        length = 0
        for part in chapters:
            if part in locked:
                raise ParseError(
                    "encrypted", "The book is copy-protected. Use a copy without protection."
                )
            if part not in archive:
                continue
            try:
                page = archive.open_in_memory(part).read()
                chapter = parse_html(page, name=part, keep_boilerplate=True)
            except ParseError as error:
                if error.code in {"no_text", "empty"}:  # only a picture
                    continue
                raise
            headings += [replace(mark, offset=mark.offset + length) for mark in chapter.headings]
            texts.append(chapter.text.rstrip("\n"))
            length += len(texts[-1]) + len("\n\n")
            limits.check_characters(length, "The book")
        if not texts:
            raise ParseError(
                "no_text", "The book has no text, perhaps only pictures. Run OCR on it."
            )
        metadata = read_properties(root.iterfind("{*}metadata/*"), _PROPERTIES)
        return office_document(
            ("\n\n".join(texts) + "\n", tuple(headings)),
            name=name,
            media_type=MEDIA_TYPE,
            metadata=metadata,
            title=metadata.get("title", ""),
        )
