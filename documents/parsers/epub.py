"""EPUB: the chapters of a book, which are web pages, in reading order."""

import posixpath
from collections.abc import Iterator
from dataclasses import replace
from urllib.parse import unquote

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from documents.parsers.html import HtmlParser
from documents.parsers.normalise import language_code, readable_title
from documents.parsers.office_package import Element, local_name, read_properties, read_xml
from documents.parsers.zip_archive import ZipArchive, normalise_part_name, open_zip

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


class EpubParser:
    """Books without copy protection. Table of contents and navigation pages are left out."""

    media_types: tuple[str, ...] = (MEDIA_TYPE,)
    suffixes: tuple[str, ...] = (".epub",)

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with open_zip(data, limits) as archive:
            container = read_xml(archive, _CONTAINER)
            files = (node for node in container.iter() if local_name(node) == "rootfile")
            path = next((node.get("full-path", "") for node in files), "")
            package = normalise_part_name(path)
            root = read_xml(archive, package)
            locked = _encrypted_parts(archive)
            parts: list[str] = []
            headings: list[Heading] = []
            length = 0
            for page in _chapter_parts(package, root):
                if page in locked:
                    raise ParseError(
                        "encrypted", "The book is copy-protected. Get a copy that is not."
                    )
                chapter = _parse_chapter(archive, page)
                if chapter is None:
                    continue
                headings += [
                    replace(mark, offset=mark.offset + length) for mark in chapter.headings
                ]
                parts.append(chapter.text.rstrip("\n"))
                length += len(parts[-1]) + len("\n\n")
                if length > limits.max_characters:
                    raise ParseError(
                        "too_large", f"The book has more than {limits.max_characters:,} characters."
                    )
            if not parts:
                raise ParseError(
                    "no_text", "The book has no text, perhaps only pictures. Run OCR on it."
                )
            metadata = read_properties(root.iterfind("{*}metadata/*"), _PROPERTIES)
            return ParsedDocument(
                text="\n\n".join(parts) + "\n",
                media_type=MEDIA_TYPE,
                title=metadata.get("title") or readable_title(name),
                rendering="markdown",
                headings=tuple(headings),
                metadata=metadata,
                language=language_code(metadata.get("language")),
            )


def _chapter_parts(package: str, root: Element) -> Iterator[str]:
    """Parts in reading order, each once, without the table of contents."""
    items = {
        node.get("id"): node
        for node in root.iter()
        if local_name(node) == "item" and node.get("media-type") in _PAGE_MEDIA_TYPES
    }
    seen = set()
    for node in root.iter():
        item = items.get(node.get("idref")) if local_name(node) == "itemref" else None
        if item is None or "nav" in item.get("properties", "").split():
            continue
        path = posixpath.join(posixpath.dirname(package), unquote(item.get("href", "")))
        part = normalise_part_name(posixpath.normpath(path))
        if part not in seen:
            seen.add(part)
            yield part


def _parse_chapter(archive: ZipArchive, part: str) -> ParsedDocument | None:
    """A page of the book; None for one that is missing or only a picture."""
    if part not in archive:
        return None
    try:
        return HtmlParser(keep_boilerplate=True).parse(
            archive.open_in_memory(part).read(), name=part
        )
    except ParseError as error:
        if error.code in {"no_text", "empty"}:
            return None
        raise


def _encrypted_parts(archive: ZipArchive) -> set[str]:
    """Encrypted parts; encrypted fonts do not matter."""
    if _ENCRYPTION not in archive:
        return set()
    nodes = read_xml(archive, _ENCRYPTION).iter()
    return {
        normalise_part_name(node.get("URI", ""))
        for node in nodes
        if local_name(node) == "CipherReference"
    }
