"""Blocks of a Word document as Markdown: paragraphs, lists, headings, tables, notes, text boxes."""

from collections.abc import Iterable, Iterator

from documents.parsers.base import Heading
from documents.parsers.docx_foreign import foreign_document
from documents.parsers.docx_inline import Paragraph, is_placeholder, read_paragraph
from documents.parsers.docx_numbering import Numbering
from documents.parsers.docx_styles import (
    Numbered,
    Styles,
    level_of_outline,
    numbered_of,
    outline_of,
    value,
)
from documents.parsers.docx_table import cells_of, is_covered, is_layout, rows_of, width_of
from documents.parsers.html_text import clean
from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.office import Package
from documents.parsers.office_drawing import description, without_doubles, write_graphics
from documents.parsers.office_lists import ListWriter
from documents.parsers.office_tables import cell_text, write_table
from documents.parsers.office_xml import Element, R, W, alternatives, local_name

_SKIPPED = frozenset({"del", "moveFrom", "sectPr", "sdtPr", "sdtEndPr", "tcPr", ""})
#: A whole paragraph in the style of a heading is emphasis.
_LONGEST_HEADING = 300
_DEEPEST_HEADING = 6
#: `Page 3 of 12` without its numbers.
_WORDS_AROUND_PAGE_NUMBER = 3


class Body:
    """Writes one block after the other; `title` is the paragraph with the style of a title."""

    def __init__(self, package: Package) -> None:
        self.out = MarkdownWriter()
        self.title = ""
        self._package = package
        self._lists = ListWriter(self.out)
        self._styles = Styles(self._part("styles"))
        self._numbering = Numbering(self._part("numbering"))
        self._notes = {kind: _notes(self._part(f"{kind}s")) for kind in ("footnote", "endnote")}
        self._note_count = 0
        self._place = package.main

    def running_lines(self) -> None:
        """Heads and feet of pages, those that say the same once."""
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
                self._foreign(node.get(f"{R}id", ""))
            case name if name in _SKIPPED:
                return
            case "AlternateContent":
                self.blocks(alternatives(node))
            case "sdt" if is_placeholder(node):
                return
            case _:
                self.blocks(node)

    def finish(self) -> tuple[str, tuple[Heading, ...]]:
        self._lists.end()
        return self.out.finish()

    def _part(self, kind: str) -> Element | None:
        return self._package.optional_xml(self._package.related_part(self._package.main, kind))

    def _foreign(self, reference: str) -> None:
        self._lists.end()
        relation = self._package.related(self._place).get(reference)
        data = self._package.read(relation.target) if relation else b""
        if relation and data and (found := foreign_document(data, part=relation.target)):
            self.out.embed(found.text, found.headings)

    def _paragraph(self, node: Element) -> None:
        properties = node.find(f"{W}pPr")
        style = value(properties, "pStyle")
        if self._styles.is_contents(style):
            return
        found = self._read(node)
        label, level = self._label(properties, style)
        title = " ".join(clean(found.text).split())
        if title and self._styles.is_title(style):
            self.title = self.title or title
        heading = self._heading_level(properties, style)
        if title and heading and len(title) <= _LONGEST_HEADING:
            self._lists.end()
            self.out.heading(heading, f"{label or ''} {title}".strip())
        elif title:
            if label is None:
                self._lists.end()
            else:
                self._lists.item(level, label)
            self._write(found.text)
        self._attachments([found])

    def _read(self, node: Element) -> Paragraph:
        found = read_paragraph(node, first_note=self._note_count + 1)
        self._note_count += len(found.notes)
        if found.has_page_number and len(found.text.split()) <= _WORDS_AROUND_PAGE_NUMBER:
            found.parts.clear()
        return found

    def _label(self, properties: Element | None, style: str) -> tuple[str | None, int]:
        """What Word shows before the paragraph, None if it is in no list, and the list's level."""
        own, inherited = numbered_of(properties), self._styles.numbered(style)
        numbered = own or inherited
        if numbered and not numbered.list_id and inherited:
            numbered = Numbered(inherited.list_id, numbered.level)
        return (self._numbering.label(numbered), numbered.level) if numbered else (None, 0)

    def _heading_level(self, properties: Element | None, style: str) -> int | None:
        if self._styles.is_title(style):
            return 1
        outline = outline_of(properties)
        level = self._styles.heading_level(style) if outline is None else level_of_outline(outline)
        return level and min(level, _DEEPEST_HEADING)

    def _write(self, text: str) -> None:
        for line in text.split("\n"):
            self.out.write(line)
            self.out.end_line()
        self.out.end_block()

    def _table(self, table: Element) -> None:
        self._lists.end()
        rows = list(rows_of(table))
        if is_layout(table, rows, self._is_heading):
            self.blocks(child for row in rows for cell in cells_of(row) for child in cell)
            return
        found: list[Paragraph] = []
        write_table(self.out, [self._cells(row, found) for row in rows])
        self._attachments(found)

    def _is_heading(self, node: Element) -> bool:
        properties = node.find(f"{W}pPr")
        return self._heading_level(properties, value(properties, "pStyle")) is not None

    def _cells(self, row: Element, found: list[Paragraph]) -> list[str | None]:
        """The texts of a row's cells, each in its column; what is in `found` has attachments."""
        cells: list[str | None] = [""] * width_of(row.find(f"{W}trPr"), "gridBefore", least=0)
        for cell in cells_of(row):
            if is_covered(cell):
                cells.append(None)
            else:
                lines = list(self._lines(cell, found))
                cells.append(cell_text(lines))
            cells += [""] * (width_of(cell.find(f"{W}tcPr"), "gridSpan") - 1)
        return cells

    def _lines(self, node: Element, found: list[Paragraph]) -> Iterator[str]:
        """Paragraphs of a cell, each on one line."""
        for child in node:
            name = local_name(child)
            if name == "p":
                paragraph = self._read(child)
                found.append(paragraph)
                properties = child.find(f"{W}pPr")
                label, _ = self._label(properties, value(properties, "pStyle"))
                yield " ".join(clean(f"{label or ''} {paragraph.text}").split())
            elif name not in _SKIPPED and not (name == "sdt" and is_placeholder(child)):
                yield from self._lines(child, found)

    def _attachments(self, paragraphs: Iterable[Paragraph]) -> None:
        """Text boxes, pictures, charts and notes, behind what refers to them."""
        for paragraph in paragraphs:
            for number, (kind, note_id) in enumerate(paragraph.notes, start=paragraph.first_note):
                self._write(f"[{number}] {self._notes[kind].get(note_id, '')}")
            for drawing in paragraph.drawings:
                self._drawing(drawing)

    def _drawing(self, drawing: Element) -> None:
        boxes: list[Element] = []
        for node in without_doubles(drawing):
            match local_name(node):
                case "docPr":
                    self._write(description(node))
                case "txbxContent" if not any(box in boxes for box in node.iterancestors()):
                    boxes.append(node)
        write_graphics(self.out, self._package, self._place, drawing)
        for box in boxes:
            self.blocks(box)


def _notes(root: Element | None) -> dict[str, str]:
    """The text of each foot or end note, by id."""
    notes = {}
    for note in () if root is None else root.iterfind("*"):
        texts = (read_paragraph(paragraph).text for paragraph in note.iter(f"{W}p"))
        notes[note.get(f"{W}id", "")] = " ".join(clean(" ".join(texts)).split())
    return notes
