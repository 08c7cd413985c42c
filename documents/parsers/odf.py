"""OpenDocument: texts, spreadsheets and presentations of LibreOffice and others."""

from collections.abc import Iterator
from typing import Any

from documents.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from documents.parsers.metadata import json_safe, language_code, readable_title
from documents.parsers.odf_sheet import read_sheet
from documents.parsers.odf_text import DRAW, PRESENTATION, STYLE, TABLE, TEXT, OdfWriter
from documents.parsers.office import sole_heading, stated_title
from documents.parsers.office_xml import Element, local_name, read_xml
from documents.parsers.xlsx_tables import write_notes_and_tables
from documents.parsers.zip_archive import ZipArchive, open_zip

_TYPE = "application/vnd.oasis.opendocument."
_MANIFEST = "meta-inf/manifest.xml"
_FURNITURE = frozenset({"date-time", "footer", "header", "page-number", "page"})
_PROPERTIES = {
    "title": "title",
    "initial-creator": "author",
    "creator": "author",
    "subject": "subject",
    "keyword": "keywords",
    "description": "description",
    "language": "language",
    "creation-date": "created_at",
    "date": "modified_at",
}


class OdfParser:
    """Texts, spreadsheets and presentations, and their templates."""

    media_types: tuple[str, ...] = tuple(
        f"{_TYPE}{kind}" for kind in ("text", "spreadsheet", "presentation")
    )
    suffixes: tuple[str, ...] = (".odt", ".ott", ".ods", ".ots", ".odp", ".otp")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with open_zip(data, limits) as archive:
            return _parse(archive, name, limits)


def _parse(archive: ZipArchive, name: str, limits: Limits) -> ParsedDocument:
    _refuse_locked(archive)
    root = read_xml(archive, "content.xml")
    writer = OdfWriter(_styles(archive, root))
    body = next(root.iterfind("{*}body/*"), root)
    pages = tuple(_write(writer, body, limits))
    text, headings = writer.out.finish()
    if not writer.has_text:
        raise ParseError(
            "no_text", "The document has no text, perhaps only pictures. Run OCR on them first."
        )
    metadata = _metadata(archive)
    return ParsedDocument(
        text=text,
        media_type=f"{_TYPE}{local_name(body)}",
        title=writer.title
        or stated_title(metadata)
        or sole_heading(headings)
        or readable_title(name),
        rendering="markdown",
        headings=headings,
        pages=pages,
        metadata=metadata,
        language=language_code(metadata.get("language")),
    )


def _write(writer: OdfWriter, body: Element, limits: Limits) -> Iterator[Page]:
    """All of the document; gives the pages of a presentation."""
    match local_name(body):
        case "spreadsheet":
            for table in body.iterfind(f"{TABLE}table"):
                sheet = read_sheet(table, limits)
                if sheet.rows:
                    writer.heading(1, table.get(f"{TABLE}name", ""))
                    write_notes_and_tables(writer.out, sheet)
                    writer.has_text = True
        case "presentation":
            for number, slide in enumerate(body.iterfind(f"{DRAW}page"), start=1):
                yield Page(_write_slide(writer, slide, number), number)
        case _:
            writer.blocks(body)


def _write_slide(writer: OdfWriter, slide: Element, number: int) -> int:
    """Its title, its frames, and the speaker's notes; returns where it begins."""
    titles = [node for node in slide if node.get(f"{PRESENTATION}class") == "title"]
    title = " ".join(" ".join(" ".join(map(str, node.itertext())) for node in titles).split())
    offset = writer.heading(2, title or f"Slide {number}")
    writer.has_text |= bool(title)
    writer.blocks(node for node in _content(slide) if node not in titles)
    for notes in slide.iterfind(f"{PRESENTATION}notes"):
        writer.out.open("> ", "> ")
        writer.blocks(_content(notes))
        writer.out.close()
    return offset


def _content(page: Element) -> Iterator[Element]:
    """What stands on no other page."""
    return (node for node in page if node.get(f"{PRESENTATION}class") not in _FURNITURE)


def _styles(archive: ZipArchive, content: Element) -> Iterator[Element]:
    """Of the document and those made while it was written."""
    roots = [content]
    if "styles.xml" in archive:
        roots.insert(0, read_xml(archive, "styles.xml"))
    for root in roots:
        yield from root.iter(f"{STYLE}style", f"{TEXT}list-style")


def _refuse_locked(archive: ZipArchive) -> None:
    if _MANIFEST in archive:
        nodes = read_xml(archive, _MANIFEST).iter()
        if any(local_name(node) == "encryption-data" for node in nodes):
            raise ParseError(
                "encrypted",
                "The document has a password. Open it, remove the password and save it.",
            )


def _metadata(archive: ZipArchive) -> dict[str, Any]:
    found: dict[str, str] = {}
    if "meta.xml" in archive:
        for node in read_xml(archive, "meta.xml").iter():
            key, text = _PROPERTIES.get(local_name(node)), " ".join((node.text or "").split())
            if key and text:
                found.setdefault(key, text)
    values: dict[str, Any] = json_safe(found)
    return values
