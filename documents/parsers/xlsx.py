"""Excel: each sheet a heading, its rows as tables that know their column names."""

from collections.abc import Iterator

from documents.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.metadata import language_code, readable_title
from documents.parsers.office import Package, open_package, stated_title
from documents.parsers.office_drawing import write_drawing
from documents.parsers.office_xml import Element, R, S
from documents.parsers.xlsx_cells import CellReader, Sheet, is_since_1904
from documents.parsers.xlsx_tables import write_notes_and_tables

_HIDDEN = frozenset({"hidden", "veryHidden"})
MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"


class XlsxParser:
    """Workbooks, with macros or not, and templates. Formulas by the value last computed.

    Sheets, rows and columns that are hidden are read like others, as every reader can show them;
    only what no menu can show (`veryHidden`) is left out.
    """

    media_types: tuple[str, ...] = (MEDIA_TYPE,)
    suffixes: tuple[str, ...] = (".xlsx", ".xlsm", ".xltx", ".xltm")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with open_package(data, limits) as package:
            return _parse(package, name, limits)


def _parse(package: Package, name: str, limits: Limits) -> ParsedDocument:
    workbook = package.xml(package.main)
    reader = CellReader(package, since_1904=is_since_1904(workbook), limits=limits)
    metadata = package.properties()
    out = MarkdownWriter()
    filled = 0
    for node, part in _sheets(package, workbook):
        title, state = " ".join(node.get("name", "").split()), node.get("state", "")
        if state in _HIDDEN:
            metadata.setdefault("hidden_sheets", []).append(title)
        if state != "veryHidden":
            filled += _write_sheet(out, package, part, title, reader.sheet(part))
    if not filled:
        raise ParseError(
            "no_text", "The workbook has no filled cell. Check that the right file was saved."
        )
    if reader.formulas_without_value:
        metadata["formulas_without_value"] = reader.formulas_without_value
    text, headings = out.finish()
    return ParsedDocument(
        text=text,
        media_type=MEDIA_TYPE,
        title=stated_title(metadata) or readable_title(name),
        rendering="markdown",
        headings=headings,
        metadata=metadata,
        language=language_code(metadata.get("language")),
    )


def _sheets(package: Package, workbook: Element) -> Iterator[tuple[Element, str]]:
    """Worksheets in the order of their tabs, with their parts."""
    relations = package.related(package.main)
    for node in workbook.iterfind(f"{S}sheets/{S}sheet"):
        relation = relations.get(node.get(f"{R}id", ""))
        if relation and relation.kind in {"worksheet", "chartsheet"}:
            yield node, relation.target


def _write_sheet(
    out: MarkdownWriter, package: Package, part: str, title: str, sheet: Sheet
) -> bool:
    """False if nothing stands on the sheet; one without cells and drawings is not written."""
    drawings = package.related_parts(part, "drawing")
    if not sheet.rows and not drawings:
        return False
    out.heading(1, title)
    before = out.length
    write_notes_and_tables(out, sheet)
    for drawing in drawings:
        write_drawing(out, package, drawing)
    return out.length > before
