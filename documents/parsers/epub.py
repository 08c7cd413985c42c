"""EPUB: the chapters of a book, which are web pages, in the order in which they are read."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import unquote

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from documents.parsers.html import HtmlParser
from documents.parsers.metadata import json_safe, language_code, readable_title
from documents.parsers.office_xml import Element, local_name, read_xml
from documents.parsers.zip_archive import ZipArchive, open_zip, part_name

MEDIA_TYPE = "application/epub+zip"

_CONTAINER = "meta-inf/container.xml"
_ENCRYPTION = "meta-inf/encryption.xml"
_PAGES = frozenset({"application/xhtml+xml", "text/html"})
_PROPERTIES = {
    "title": "title",
    "creator": "author",
    "language": "language",
    "subject": "subject",
    "description": "description",
    "publisher": "publisher",
    "date": "date",
}


class EpubParser:
    """Books without copy protection. The pages of contents and navigation are left out."""

    media_types: tuple[str, ...] = (MEDIA_TYPE,)
    suffixes: tuple[str, ...] = (".epub",)

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with open_zip(data, limits) as archive:
            return _parse(archive, name, limits)


def _parse(archive: ZipArchive, name: str, limits: Limits) -> ParsedDocument:
    package, root = _package(archive)
    locked = _locked(archive)
    parts: list[str] = []
    headings: list[Heading] = []
    length = 0
    for page in _pages(package, root):
        if page in locked:
            raise ParseError("encrypted", "The book is copy-protected. Get a copy that is not.")
        chapter = _chapter(archive, page)
        if chapter is None:
            continue
        headings += [replace(mark, offset=mark.offset + length) for mark in chapter.headings]
        parts.append(chapter.text.rstrip("\n"))
        length += len(parts[-1]) + len("\n\n")
        if length > limits.max_characters:
            raise ParseError(
                "too_large", f"The book has more than {limits.max_characters:,} characters."
            )
    if not parts:
        raise ParseError("no_text", "The book has no text, perhaps only pictures. Run OCR on it.")
    metadata = _metadata(root)
    return ParsedDocument(
        text="\n\n".join(parts) + "\n",
        media_type=MEDIA_TYPE,
        title=metadata.get("title") or readable_title(name),
        rendering="markdown",
        headings=tuple(headings),
        metadata=metadata,
        language=language_code(metadata.get("language")),
    )


def _package(archive: ZipArchive) -> tuple[str, Element]:
    """The part that lists all others, and its root."""
    container = read_xml(archive, _CONTAINER)
    files = (node for node in container.iter() if local_name(node) == "rootfile")
    part = part_name(next((node.get("full-path", "") for node in files), ""))
    return part, read_xml(archive, part)


def _pages(package: str, root: Element) -> Iterator[str]:
    """Parts in reading order, each once, without the page of contents."""
    items = {
        node.get("id"): node
        for node in root.iter()
        if local_name(node) == "item" and node.get("media-type") in _PAGES
    }
    seen = set()
    for node in root.iter():
        item = items.get(node.get("idref")) if local_name(node) == "itemref" else None
        if item is None or "nav" in item.get("properties", "").split():
            continue
        path = posixpath.join(posixpath.dirname(package), unquote(item.get("href", "")))
        part = part_name(posixpath.normpath(path))
        if part not in seen:
            seen.add(part)
            yield part


def _chapter(archive: ZipArchive, part: str) -> ParsedDocument | None:
    """A page of the book; None for one that is missing or only a picture."""
    if part not in archive:
        return None
    try:
        return HtmlParser(whole=True).parse(archive.open_whole(part).read(), name=part)
    except ParseError as error:
        if error.code in {"no_text", "empty"}:
            return None
        raise


def _locked(archive: ZipArchive) -> set[str]:
    """Parts that cannot be read without a key; fonts may be among them, which nobody minds."""
    if _ENCRYPTION not in archive:
        return set()
    nodes = read_xml(archive, _ENCRYPTION).iter()
    return {
        part_name(node.get("URI", "")) for node in nodes if local_name(node) == "CipherReference"
    }


def _metadata(root: Element) -> dict[str, Any]:
    found: dict[str, str] = {}
    for node in root.iterfind("{*}metadata/*"):
        key, text = _PROPERTIES.get(local_name(node)), " ".join((node.text or "").split())
        if key and text:
            found.setdefault(key, text)
    values: dict[str, Any] = json_safe(found)
    return values
