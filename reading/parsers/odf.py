"""OpenDocument: texts, spreadsheets and presentations of LibreOffice and others. Begin with
`parse_odf`."""

from collections.abc import Iterable, Iterator

from reading.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from reading.parsers.markdown_writer import MarkdownWriter, single_line
from reading.parsers.office_content import (
    FROM_LEFT,
    LETTER,
    ListWriter,
    Paragraph,
    cell_text,
    format_general,
    write_table,
)
from reading.parsers.office_package import (
    Element,
    local_name,
    office_document,
    parse_integer,
    read_properties,
    read_xml,
    single_top_heading,
)
from reading.parsers.xlsx import MAX_CELLS, Sheet, WorkbookWriter
from reading.parsers.zip_archive import open_zip

_ODF_NAMESPACE = "urn:oasis:names:tc:opendocument:xmlns:"
TEXT, TABLE, OFFICE = (f"{{{_ODF_NAMESPACE}{name}:1.0}}" for name in ("text", "table", "office"))
DRAW, STYLE = (f"{{{_ODF_NAMESPACE}{name}:1.0}}" for name in ("drawing", "style"))
PRESENTATION = f"{{{_ODF_NAMESPACE}presentation:1.0}}"

_SKIPPED = frozenset(
    {
        "tracked-changes", "table-of-content", "annotation-end", "forms",
        "sequence-decls", "variable-decls", "hidden-text", "page-number", "page-count", "notes",
        "soft-page-break", "ruby-text", "note-citation", "",
    }
)  # fmt: skip
_DEEPEST_HEADING = 6
_MAX_COLUMNS = 64
_MAX_SPACES = 100


class OdfWriter:
    """Writes block after block; `title` is the paragraph with a title style."""

    def __init__(self, styles: Iterable[Element]) -> None:
        self.out = MarkdownWriter()
        self.title = ""
        self.has_text = False
        self._lists = ListWriter(self.out)
        self._titles = {"Title"}
        self._numbered: set[tuple[str, int]] = set()
        self._note_count = 0
        for style in styles:
            # Collect title styles, and the list levels that are numbered.
            name = style.get(f"{STYLE}name", "")
            if style.get(f"{STYLE}parent-style-name") == "Title":
                self._titles.add(name)
            for level in style.iterfind(f"{TEXT}list-level-style-number"):
                self._numbered.add((name, parse_integer(level.get(f"{TEXT}level"), 1) - 1))

    def blocks(self, nodes: Iterable[Element]) -> None:
        for node in nodes:
            self.block(node)

    def block(self, node: Element) -> None:
        match local_name(node):
            case "p" | "h" as name:
                found = self._read(node)
                title = single_line(found.text)
                is_title = node.get(f"{TEXT}style-name") in self._titles
                if title and (name == "h" or is_title):
                    self.title = self.title or (title if is_title else "")
                    level = 1 if is_title else parse_integer(node.get(f"{TEXT}outline-level"), 1)
                    self.heading(max(1, min(level, _DEEPEST_HEADING)), title)
                    self.has_text = True
                else:
                    self._write(found.text)
                self._attachments(found)
            case "list":
                self._list(node, node.get(f"{TEXT}style-name", ""), 0)
                self._lists.end()
            case "table":
                self._table(node)
            case "title" | "desc" if node.prefix == "svg":
                self._write(node.text or "")
            case name if name not in _SKIPPED:
                self.blocks(node)

    def shape(self, node: Element) -> None:
        """What is in a shape of a sheet, or a comment of a cell."""
        if local_name(node) == "annotation":
            self._write(self._comment(node))
        else:
            self.blocks(node)

    def heading(self, level: int, title: str) -> int:
        """Write a heading and return its offset."""
        self._lists.end()
        return self.out.heading(level, title)

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
        rows = [list(row) for row in odf_rows(table)]
        is_layout = len(rows) < 2 or next(table.iter(f"{TEXT}h"), None) is not None
        if is_layout or any(node is not table for node in table.iter(f"{TABLE}table")):
            self.blocks(cell for row in rows for cell in row)
            return
        found: list[Paragraph] = []
        written: list[list[str | None]] = []
        for row in rows:
            # None where another cell covers it from above.
            cells: list[str | None] = []
            beside = 0
            for cell in row:
                if local_name(cell) == "covered-table-cell":
                    cells.append(FROM_LEFT if beside > 0 else None)
                    beside -= 1
                    continue
                paragraphs = [self._read(node) for node in cell.iter(f"{TEXT}p")]
                found += paragraphs
                text = cell_text([single_line(one.text) for one in paragraphs])
                repeats = parse_integer(cell.get(f"{TABLE}number-columns-repeated"), 1)
                cells += [text] * max(1, min(repeats, _MAX_COLUMNS))
                beside = parse_integer(cell.get(f"{TABLE}number-columns-spanned"), 1) - 1
            written.append(cells)
        write_table(self.out, written)
        self.has_text |= any(one.text.strip() for one in found)
        for paragraph in found:
            self._attachments(paragraph)

    def _write(self, text: str) -> None:
        self.out.paragraph(text)
        self.has_text |= bool(text.strip())

    def _read(self, node: Element) -> Paragraph:
        found = Paragraph()
        self._inline(node, found)
        return found

    def _inline(self, node: Element, found: Paragraph) -> None:
        found.parts.append(node.text or "")
        for child in node:
            match local_name(child):
                case "s":
                    found.parts.append(
                        " " * min(parse_integer(child.get(f"{TEXT}c"), 1), _MAX_SPACES)
                    )
                case "tab":
                    found.parts.append("\t")
                case "line-break":
                    found.parts.append("\n")
                case "frame" | "custom-shape":
                    found.drawings.append(child)
                case "note":
                    self._note_count += 1
                    found.parts.append(f"[{self._note_count}]")
                    texts = (self._read(one).text for one in child.iter(f"{TEXT}p"))
                    found.notes.append(f"[{self._note_count}] {' '.join(texts)}")
                case "annotation":
                    found.notes.append(self._comment(child))
                case name if name not in _SKIPPED:
                    self._inline(child, found)
            found.parts.append(child.tail or "")

    def _comment(self, node: Element) -> str:
        texts = (single_line(self._read(one).text) for one in node.iter(f"{TEXT}p"))
        return f"Comment: {' '.join(texts)}"

    def _attachments(self, paragraph: Paragraph) -> None:
        for note in paragraph.notes:
            self._write(note)
        self.blocks(paragraph.drawings)


def odf_rows(table: Element) -> Iterable[Element]:
    """All rows, including those of groups and of the table header."""
    for node in table:
        name = local_name(node)
        if name == "table-row":
            yield node
        elif name.startswith("table-") and "row" in name:
            yield from odf_rows(node)


_CELL_TAGS = frozenset({"table-cell", "covered-table-cell"})
#: An empty row or cell may be repeated a million times; filled ones at most this often.
_MAX_REPEATS = 1000
_MAX_REPEATED_CELLS = 10_000


def read_sheet(table: Element, limits: Limits) -> Sheet:
    """The filled rows of a table. Raises ParseError beyond `limits.max_characters`."""
    sheet = Sheet()
    number = characters = filled = 0
    for row in odf_rows(table):
        cells = _sheet_cells(row, number + 1, sheet)
        repeats = max(1, parse_integer(row.get(f"{TABLE}number-rows-repeated"), 1))
        believed = min(repeats, max(1, _MAX_REPEATED_CELLS // max(1, len(cells))))
        for at in range(1, believed + 1 if cells else 0):
            sheet.rows.append((number + at, dict(cells)))
            filled += len(cells)
            characters += sum(map(len, cells.values()))
            if characters > limits.max_characters or filled > MAX_CELLS:
                raise ParseError(
                    "too_large",
                    f"A sheet has more than {MAX_CELLS:,} filled cells or "
                    f"{limits.max_characters:,} characters. Split it.",
                )
        number += repeats
    return sheet


def _sheet_cells(row: Element, number: int, sheet: Sheet) -> dict[int, str]:
    cells: dict[int, str] = {}
    column = 0
    for cell in row:
        if local_name(cell) not in _CELL_TAGS:
            continue
        repeats = max(1, parse_integer(cell.get(f"{TABLE}number-columns-repeated"), 1))
        if local_name(cell) == "table-cell" and (text := _odf_cell_text(cell)):
            cells |= dict.fromkeys(range(column, column + min(repeats, _MAX_REPEATS)), text)
            down = parse_integer(cell.get(f"{TABLE}number-rows-spanned"), 1) - 1
            right = parse_integer(cell.get(f"{TABLE}number-columns-spanned"), 1) - 1
            if down > 0 or right > 0:
                sheet.merged.append((number, column, number + down, column + right))
        column += repeats
    return cells


def _odf_cell_text(cell: Element) -> str:
    """Dates as ISO, numbers without separated thousands, all else as it is shown."""
    value = cell.get(f"{OFFICE}value")
    if (date := cell.get(f"{OFFICE}date-value")) is not None:
        return date.removesuffix("T00:00:00").replace("T", " ")
    if cell.get(f"{OFFICE}value-type") == "float" and value is not None:
        try:
            return format_general(float(value))
        except ValueError:
            return value
    lines = ("".join(map(str, node.itertext())) for node in cell.iterfind(f"{TEXT}p"))
    return cell_text([single_line(line) for line in lines])


_ODF_TYPE = "application/vnd.oasis.opendocument."
_MANIFEST_PART = "meta-inf/manifest.xml"
_PAGE_FURNITURE = frozenset({"date-time", "footer", "header", "page-number", "page"})
#: Shapes of a master page that people fill; None: those that are no placeholders.
_TYPED_ON_MASTERS = frozenset({None, "header", "footer"})
_TYPED = frozenset({"a", "line-break", "s", "span", "tab"})
_SHEET_SHAPES = (f"{DRAW}text-box", f"{DRAW}custom-shape", f"{OFFICE}annotation")
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


def parse_odf(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Texts, spreadsheets and presentations, and their templates."""
    with open_zip(data, limits) as archive:
        if _MANIFEST_PART in archive:
            nodes = read_xml(archive, _MANIFEST_PART).iter()
            if any(local_name(node) == "encryption-data" for node in nodes):
                raise ParseError(
                    "encrypted",
                    "The document has a password. Open it, remove the password and save it.",
                )
        root = read_xml(archive, "content.xml")
        styles = [read_xml(archive, "styles.xml")] if "styles.xml" in archive else []
        tags = (f"{STYLE}style", f"{TEXT}list-style")
        writer = OdfWriter(node for tree in [*styles, root] for node in tree.iter(*tags))
        body = next(root.iterfind("{*}body/*"), root)
        workbook = WorkbookWriter(writer.out)
        masters = (page for tree in styles for page in tree.iter(f"{STYLE}master-page"))
        pages = tuple(_write_document(writer, workbook, body, limits, masters))
        text, headings = writer.out.finish()
        if not writer.has_text:
            raise ParseError(
                "no_text",
                "The document has no text, perhaps only pictures. Run OCR on them first.",
            )
        properties = read_xml(archive, "meta.xml").iter() if "meta.xml" in archive else ()
        metadata = read_properties(properties, _PROPERTIES)
        return office_document(
            (text, headings),
            name=name,
            media_type=f"{_ODF_TYPE}{local_name(body)}",
            metadata=metadata | workbook.metadata(),
            title=writer.title,
            fallback_title=single_top_heading(headings),
            pages=pages or workbook.pages(text),
        )


def _write_document(
    writer: OdfWriter,
    workbook: WorkbookWriter,
    body: Element,
    limits: Limits,
    masters: Iterable[Element],
) -> Iterator[Page]:
    """Write the whole document; yields the pages of a presentation. What people typed on the
    `masters` of its pages comes once: before a text, behind the sheets, on the first slide."""
    seen: set[str] = set()

    def write_once(nodes: Iterable[Element]) -> None:
        for node in nodes:
            text = single_line(_text(node))
            if LETTER.search(text) and text not in seen:
                seen.add(text)
                writer.blocks([node] if local_name(node) == "p" else node)

    match local_name(body):
        case "spreadsheet":
            for table in body.iterfind(f"{TABLE}table"):
                sheet = read_sheet(table, limits)
                shapes = [node for node in table.iter(*_SHEET_SHAPES) if LETTER.search(_text(node))]
                if sheet.rows or shapes:
                    title = " ".join(table.get(f"{TABLE}name", "").split())
                    workbook.sheet(title, writer.heading(1, title), sheet)
                    writer.has_text |= bool(sheet.rows)
                    for shape in shapes:
                        writer.shape(shape)
            for page in masters:
                write_once(line for part in _heads_and_feet(page) for line in _typed_lines(part))
        case "presentation":
            by_name = {page.get(f"{STYLE}name", ""): page for page in masters}
            for number, slide in enumerate(body.iterfind(f"{DRAW}page"), start=1):
                titles = [node for node in slide if node.get(f"{PRESENTATION}class") == "title"]
                title = " ".join(
                    " ".join(" ".join(map(str, node.itertext())) for node in titles).split()
                )
                offset = writer.heading(2, title or f"Slide {number}")
                writer.has_text |= bool(title)
                writer.blocks(node for node in _slide_elements(slide) if node not in titles)
                for shape in by_name.get(slide.get(f"{DRAW}master-page-name", ""), ()):
                    if shape.get(f"{PRESENTATION}class") in _TYPED_ON_MASTERS:
                        write_once(_typed_lines(shape))
                for notes in slide.iterfind(f"{PRESENTATION}notes"):
                    writer.out.open("> ", "> ")
                    writer.blocks(_slide_elements(notes))
                    writer.out.close()
                yield Page(offset, number)
        case _:
            write_once(part for page in masters for part in _heads_and_feet(page))
            writer.blocks(body)


def _text(node: Element) -> str:
    return "".join(map(str, node.itertext()))


def _heads_and_feet(page: Element) -> Iterator[Element]:
    return (part for part in page if local_name(part).startswith(("header", "footer")))


def _typed_lines(node: Element) -> Iterator[Element]:
    """Paragraphs without fields, such as the number of the page or the name of the sheet."""
    for line in node.iter(f"{TEXT}p"):
        if all(local_name(part) in _TYPED for part in line.iterdescendants()):
            yield line


def _slide_elements(page: Element) -> Iterator[Element]:
    """Elements of the slide without page furniture."""
    return (node for node in page if node.get(f"{PRESENTATION}class") not in _PAGE_FURNITURE)
