"""Word: the text in reading order as Markdown, with headings, lists, tables, notes and text boxes.
Begin with `parse_docx`; `DocxBody` writes the blocks."""

import email.policy
from collections.abc import Iterable, Iterator
from email import message_from_bytes

from reading.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from reading.parsers.docx_paragraphs import (
    Numbering,
    ParagraphReader,
    ParagraphStyles,
    child_value,
    heading_level_of_outline,
    is_placeholder,
    list_position,
    outline_level,
)
from reading.parsers.html import parse_html
from reading.parsers.markdown_writer import MarkdownWriter, single_line
from reading.parsers.office_content import (
    FROM_LEFT,
    ListWriter,
    Paragraph,
    cell_text,
    picture_description,
    without_alternatives,
    write_graphics,
    write_table,
)
from reading.parsers.office_package import (
    Element,
    OfficePackage,
    R,
    W,
    alternative_content,
    local_name,
    office_document,
    parse_integer,
    single_top_heading,
)
from reading.parsers.text_formats import parse_plain
from reading.parsers.zip_archive import open_zip


def embedded_document(data: bytes, *, part: str) -> ParsedDocument | None:
    """The web page or text that `w:altChunk` refers to; None for formats that are not supported,
    such as RTF."""
    try:
        if part.endswith((".htm", ".html", ".xhtml")):
            return parse_html(data, name=part, keep_boilerplate=True)
        if part.endswith((".mht", ".mhtml")):
            # The page of a web archive, which is an e-mail with its images as attachments.
            message = message_from_bytes(data, policy=email.policy.default)
            body = message.get_body(preferencelist=("html",))
            if body is None:
                return None
            return parse_html(body.get_content().encode(), name=part, keep_boilerplate=True)
        return parse_plain(data, name=part) if part.endswith(".txt") else None
    except (ParseError, LookupError, AttributeError):  # of a torn archive, or one of no charset
        return None


#: Word allows 63 columns.
_MAX_COLUMNS = 63
_DELETED_TAGS = frozenset({"del", "moveFrom"})


def _undeleted(node: Element, tag: str, deleted: str) -> Iterator[Element]:
    """The rows of a table or cells of a row but for deleted ones, which have a child `deleted`."""
    for child in node:
        name = local_name(child)
        if name == tag:
            if child.find(deleted) is None:
                yield child
        elif name not in _DELETED_TAGS:
            yield from _undeleted(child, tag, deleted)


def column_span(properties: Element | None, name: str, *, least: int = 1) -> int:
    """How many columns a cell spans, or precede a row."""
    node = None if properties is None else properties.find(f"{W}{name}")
    width = least if node is None else parse_integer(node.get(f"{W}val"), least)
    return max(least, min(width, _MAX_COLUMNS))


_SKIPPED = frozenset({"del", "moveFrom", "sectPr", "sdtPr", "sdtEndPr", "tcPr", ""})
#: A whole paragraph in the style of a heading is emphasis.
_MAX_HEADING_CHARACTERS = 300
_MAX_HEADING_LEVEL = 6


class DocxBody:
    """Writes one block after the other; `title` is the paragraph with a title style."""

    def __init__(self, package: OfficePackage) -> None:
        self.out = MarkdownWriter()
        self.title = ""
        self._package = package
        self.lists = ListWriter(self.out)
        self._styles = ParagraphStyles(self._part("styles"))
        self._numbering = Numbering(self._part("numbering"))
        self._reader = ParagraphReader()
        notes = {}
        for kind in ("footnote", "endnote", "comment"):
            root = self._part(f"{kind}s")
            for note in () if root is None else root.iterfind("*"):
                texts = (ParagraphReader().read(node).text for node in note.iter(f"{W}p"))
                notes[kind, note.get(f"{W}id", "")] = single_line(" ".join(texts))
        self._reader.notes = notes
        self._place = package.main

    def running_lines(self) -> None:
        """Page headers and footers, each distinct text once."""
        seen = set()
        for kind in ("header", "footer"):
            for part in self._package.related_parts(self._package.main, kind):
                root = self._package.xml(part)
                text = "".join(node.text or "" for node in root.iter(f"{W}t"))
                if text not in seen:
                    self._place = part
                    self.blocks(root)
                seen.add(text)
        self._place = self._package.main

    def blocks(self, nodes: Iterable[Element]) -> None:
        for node in nodes:
            self.block(node)

    def block(self, node: Element) -> None:
        match local_name(node):
            case "p" | "oMathPara":
                self._paragraph(node)
            case "tbl":
                self._table(node)
            case "altChunk":
                reference = node.get(f"{R}id", "")
                self.lists.end()
                _, part = self._package.related(self._place).get(reference, ("", ""))
                data = self._package.read(part)
                if data and (found := embedded_document(data, part=part)):
                    self.out.embed(found.text, found.headings)
            case name if name in _SKIPPED:
                return
            case "AlternateContent":
                self.blocks(alternative_content(node))
            case "sdt" if is_placeholder(node):
                return
            case _:
                self.blocks(node)

    def _part(self, kind: str) -> Element | None:
        return self._package.optional_xml(self._package.related_part(self._package.main, kind))

    def _paragraph(self, node: Element) -> None:
        properties = node.find(f"{W}pPr")
        style = child_value(properties, "pStyle")
        if self._styles.is_contents(style):
            return
        found = self._reader.read(node)
        label, level = self._label(properties, style)
        title = single_line(found.text)
        if title and self._styles.is_title(style):
            self.title = self.title or title
        heading = self._heading_level(properties, style)
        if title and heading and len(title) <= _MAX_HEADING_CHARACTERS:
            self.lists.end()
            self.out.heading(heading, f"{label or ''} {title}".strip())
        elif title:
            if label is None:
                self.lists.end()
            else:
                self.lists.item(level, label)
            self.out.paragraph(found.text)
        self._attachments([found])

    def _label(self, properties: Element | None, style: str) -> tuple[str | None, int]:
        """The list label before the paragraph, None if it is in no list, and the list level."""
        own, inherited = list_position(properties), self._styles.numbered(style)
        numbered = own or inherited
        if numbered and not numbered[0] and inherited:
            numbered = inherited[0], numbered[1]
        return (self._numbering.label(numbered), numbered[1]) if numbered else (None, 0)

    def _heading_level(self, properties: Element | None, style: str) -> int | None:
        if self._styles.is_title(style):
            return 1
        outline = outline_level(properties)
        level = (
            self._styles.heading_level(style)
            if outline is None
            else heading_level_of_outline(outline)
        )
        return level and min(level, _MAX_HEADING_LEVEL)

    def _table(self, table: Element) -> None:
        self.lists.end()
        rows = [
            (row, list(_undeleted(row, "tc", f"{W}tcPr/{W}cellDel")))
            for row in _undeleted(table, "tr", f"{W}trPr/{W}del")
        ]
        # Only layout: one row or column, or a table or heading inside.
        styled = (node.find(f"{W}pPr") for node in table.iter(f"{W}p"))
        if (
            len(rows) < 2
            or all(len(cells) < 2 for _, cells in rows)
            or any(node is not table for node in table.iter(f"{W}tbl"))
            or any(
                self._heading_level(properties, child_value(properties, "pStyle")) is not None
                for properties in styled
            )
        ):
            self.blocks(child for _, cells in rows for cell in cells for child in cell)
            return
        found: list[Paragraph] = []
        written: list[list[str | None]] = []
        for row, cells in rows:
            texts: list[str | None] = [""] * column_span(
                row.find(f"{W}trPr"), "gridBefore", least=0
            )
            for cell in cells:
                # The cell above may cover it.
                merged = cell.find(f"{W}tcPr/{W}vMerge")
                is_covered = merged is not None and merged.get(f"{W}val") != "restart"
                texts.append(None if is_covered else cell_text(list(self._lines(cell, found))))
                texts += [FROM_LEFT] * (column_span(cell.find(f"{W}tcPr"), "gridSpan") - 1)
            written.append(texts)
        write_table(self.out, written)
        self._attachments(found)

    def _lines(self, node: Element, found: list[Paragraph]) -> Iterator[str]:
        """Paragraphs of a cell, each on one line."""
        for child in node:
            name = local_name(child)
            if name == "p":
                paragraph = self._reader.read(child)
                found.append(paragraph)
                properties = child.find(f"{W}pPr")
                label, _ = self._label(properties, child_value(properties, "pStyle"))
                yield single_line(f"{label or ''} {paragraph.text}")
            elif name not in _SKIPPED and not (name == "sdt" and is_placeholder(child)):
                yield from self._lines(child, found)

    def _attachments(self, paragraphs: Iterable[Paragraph]) -> None:
        """Text boxes, pictures, charts and notes, after the paragraph that refers to them."""
        for paragraph in paragraphs:
            for note in paragraph.notes:
                self.out.paragraph(note)
            for drawing in paragraph.drawings:
                boxes: list[Element] = []
                for node in without_alternatives(drawing):
                    match local_name(node):
                        case "docPr":
                            self.out.paragraph(picture_description(node))
                        case "txbxContent" if not any(box in boxes for box in node.iterancestors()):
                            boxes.append(node)
                write_graphics(self.out, self._package, self._place, drawing)
                for box in boxes:
                    self.blocks(box)


MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


def parse_docx(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Documents and templates, with or without macros.

    Not read: deleted and hidden text, the table of contents, which repeats the headings, and page
    numbers. Page headers and footers come once, first; comments follow their paragraphs.
    """
    with open_zip(data, limits) as archive:
        package = OfficePackage(archive)
        body = DocxBody(package)
        body.running_lines()
        for node in package.stream(package.main, (f"{W}body", "*")):
            body.block(node)
            limits.check_characters(body.out.length, "The document")
        body.lists.end()
        text, headings = body.out.finish()
        if not text.strip():
            raise ParseError(
                "no_text",
                "The document has no text, perhaps only pictures. Run OCR on them first.",
            )
        # The document's properties, and how many comments it has.
        comments = package.optional_xml(package.related_part(package.main, "comments"))
        count = 0 if comments is None else len(comments)
        metadata = package.properties() | ({"comments": count} if count else {})
        return office_document(
            (text, headings),
            name=name,
            media_type=MEDIA_TYPE,
            metadata=metadata,
            title=body.title,
            fallback_title=single_top_heading(headings),
        )
