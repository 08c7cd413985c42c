"""Text of OpenDocument files as Markdown: headings, paragraphs, lists, tables, notes, frames."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from documents.parsers.html_text import clean
from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.office_lists import ListWriter
from documents.parsers.office_tables import cell_text, write_table
from documents.parsers.office_xml import Element, integer, local_name

_ODF = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, OFFICE = (f"{{{_ODF}{name}:1.0}}" for name in ("text", "table", "office"))
DRAW, STYLE = (f"{{{_ODF}{name}:1.0}}" for name in ("drawing", "style"))
PRESENTATION = f"{{{_ODF}presentation:1.0}}"

_SKIPPED = frozenset(
    {
        "tracked-changes", "table-of-content", "annotation", "annotation-end", "forms",
        "sequence-decls", "variable-decls", "hidden-text", "page-number", "page-count", "notes",
        "soft-page-break", "ruby-text", "note-citation", "",
    }
)  # fmt: skip
_DEEPEST_HEADING = 6
_MAX_COLUMNS = 64
_MAX_SPACES = 100


@dataclass(slots=True)
class _Paragraph:
    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    frames: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)


class OdfWriter:
    """Writes block after block; `title` is the paragraph with the style of a title."""

    def __init__(self, styles: Iterable[Element]) -> None:
        self.out = MarkdownWriter()
        self.title = ""
        self.has_text = False
        self._lists = ListWriter(self.out)
        self._titles = {"Title"}
        self._numbered: set[tuple[str, int]] = set()
        self._note_count = 0
        for style in styles:
            self._learn(style)

    def blocks(self, nodes: Iterable[Element]) -> None:
        for node in nodes:
            self.block(node)

    def block(self, node: Element) -> None:
        match local_name(node):
            case "p" | "h" as name:
                self._paragraph(node, is_heading=name == "h")
            case "list":
                self._list(node, node.get(f"{TEXT}style-name", ""), 0)
                self._lists.end()
            case "table":
                self._table(node)
            case "title" | "desc" if node.prefix == "svg":
                self._write(node.text or "")
            case name if name not in _SKIPPED:
                self.blocks(node)

    def heading(self, level: int, title: str) -> int:
        """Where it begins."""
        self._lists.end()
        return self.out.heading(level, title)

    def _learn(self, style: Element) -> None:
        """Which styles are a title's, and which levels of lists have numbers."""
        name = style.get(f"{STYLE}name", "")
        if style.get(f"{STYLE}parent-style-name") == "Title":
            self._titles.add(name)
        for level in style.iterfind(f"{TEXT}list-level-style-number"):
            self._numbered.add((name, integer(level.get(f"{TEXT}level"), 1) - 1))

    def _paragraph(self, node: Element, *, is_heading: bool) -> None:
        found = self._read(node)
        title = " ".join(clean(found.text).split())
        is_title = node.get(f"{TEXT}style-name") in self._titles
        if title and (is_heading or is_title):
            self.title = self.title or (title if is_title else "")
            level = 1 if is_title else integer(node.get(f"{TEXT}outline-level"), 1)
            self.heading(max(1, min(level, _DEEPEST_HEADING)), title)
            self.has_text = True
        else:
            self._write(found.text)
        self._attachments(found)

    def _list(self, node: Element, style: str, level: int) -> None:
        number = 0
        for item in node:
            if local_name(item) not in {"list-item", "list-header"}:
                continue
            number += 1
            self._lists.item(level, f"{number}." if (style, level) in self._numbered else "")
            for child in item:
                if local_name(child) == "list":
                    self._list(child, child.get(f"{TEXT}style-name") or style, level + 1)
                else:
                    self.block(child)

    def _table(self, table: Element) -> None:
        self._lists.end()
        rows = [list(row) for row in rows_of(table)]
        is_layout = len(rows) < 2 or next(table.iter(f"{TEXT}h"), None) is not None
        if is_layout or any(node is not table for node in table.iter(f"{TABLE}table")):
            self.blocks(cell for row in rows for cell in row)
            return
        found: list[_Paragraph] = []
        write_table(self.out, [self._cells(row, found) for row in rows])
        self.has_text |= any(one.text.strip() for one in found)
        for paragraph in found:
            self._attachments(paragraph)

    def _cells(self, row: Iterable[Element], found: list[_Paragraph]) -> list[str | None]:
        """A cell that another covers is empty beside it, and None below it."""
        cells: list[str | None] = []
        beside = 0
        for cell in row:
            if local_name(cell) == "covered-table-cell":
                cells.append("" if beside > 0 else None)
                beside -= 1
                continue
            paragraphs = [self._read(node) for node in cell.iter(f"{TEXT}p")]
            found += paragraphs
            text = cell_text([" ".join(clean(one.text).split()) for one in paragraphs])
            repeats = integer(cell.get(f"{TABLE}number-columns-repeated"), 1)
            cells += [text] * max(1, min(repeats, _MAX_COLUMNS))
            beside = integer(cell.get(f"{TABLE}number-columns-spanned"), 1) - 1
        return cells

    def _write(self, text: str) -> None:
        for line in text.split("\n"):
            self.out.write(line)
            self.out.end_line()
        self.out.end_block()
        self.has_text |= bool(text.strip())

    def _read(self, node: Element) -> _Paragraph:
        found = _Paragraph()
        self._inline(node, found)
        return found

    def _inline(self, node: Element, found: _Paragraph) -> None:
        found.parts.append(node.text or "")
        for child in node:
            match local_name(child):
                case "s":
                    found.parts.append(" " * min(integer(child.get(f"{TEXT}c"), 1), _MAX_SPACES))
                case "tab":
                    found.parts.append("\t")
                case "line-break":
                    found.parts.append("\n")
                case "frame" | "custom-shape":
                    found.frames.append(child)
                case "note":
                    self._note_count += 1
                    found.parts.append(f"[{self._note_count}]")
                    texts = (self._read(one).text for one in child.iter(f"{TEXT}p"))
                    found.notes.append(f"[{self._note_count}] {' '.join(texts)}")
                case name if name not in _SKIPPED:
                    self._inline(child, found)
            found.parts.append(child.tail or "")

    def _attachments(self, paragraph: _Paragraph) -> None:
        for note in paragraph.notes:
            self._write(note)
        self.blocks(paragraph.frames)


def rows_of(table: Element) -> Iterable[Element]:
    """Rows, those of groups and of the table's head too."""
    for node in table:
        name = local_name(node)
        if name == "table-row":
            yield node
        elif name.startswith("table-") and "row" in name:
            yield from rows_of(node)
