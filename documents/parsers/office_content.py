"""Content that Word, PowerPoint, Excel and OpenDocument share: lists, tables, charts, and the text
of drawings."""

import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from documents.parsers.html_text import single_line
from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.office_package import (
    A,
    Element,
    M,
    OfficePackage,
    R,
    alternative_content,
    local_name,
    parse_integer,
)
from documents.parsers.table_writer import table_blocks
from documents.parsers.xlsx_numbers import format_number

_MARKDOWN_NUMBER = re.compile(r"[0-9]{1,9}[.)]")


@dataclass(slots=True)
class Paragraph:
    """Line breaks are `\\n`; notes and drawings follow the paragraph."""

    parts: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    drawings: list[Element] = field(default_factory=list)

    @property
    def text(self) -> str:
        return "".join(self.parts)


class ListWriter:
    """Nested Markdown lists from paragraphs with list levels. `item` opens one and its text
    follows; `end` closes all."""

    def __init__(self, out: MarkdownWriter) -> None:
        self._out = out
        self._depth = 0

    def item(self, level: int, label: str = "") -> None:
        """An item of `level`, from 0; `label` is its displayed number, such as `2.` or `(a)`."""
        self._out.end_block()
        level = min(level, self._depth)
        while self._depth > level + 1:
            self._close()
        if self._depth > level:
            self._out.close()
        else:
            self._out.open_list()
            self._depth += 1
        marker = f"{label} " if _MARKDOWN_NUMBER.fullmatch(label) else "- "
        self._out.open(marker, " " * len(marker))
        if marker == "- " and label:
            self._out.write(f"{label} ")

    def end(self) -> None:
        self._out.end_block()
        while self._depth:
            self._close()

    def _close(self) -> None:
        self._out.close()
        self._out.close_list()
        self._depth -= 1


#: A longer cell keeps its lines, and its row becomes a list of the columns.
_MAX_LINE_CHARACTERS = 200
#: Merged cells with more text say more than a row needs to repeat.
_MAX_REPEATED = 100


def cell_text(lines: Sequence[str]) -> str:
    """The paragraphs of a cell, joined on one line if they are short."""
    separator = "\n" if sum(map(len, lines)) > _MAX_LINE_CHARACTERS else " "
    return separator.join(line for line in lines if line)


def write_table(out: MarkdownWriter, rows: Sequence[Sequence[str | None]]) -> None:
    """Write rows, the first with the column names; a cell is None if the one above covers it.

    Every row of a merged cell gets its text, so that it makes sense wherever the table is cut. A
    lone cell above the names is a caption. Empty rows and columns are dropped.
    """
    filled: list[list[str]] = []
    for row in rows:
        above = dict(enumerate(filled[-1])) if filled else {}
        repeated = {at: text for at, text in above.items() if len(text) <= _MAX_REPEATED}
        filled.append(
            [repeated.get(at, "") if cell is None else cell for at, cell in enumerate(row)]
        )
    table = [row for row in filled if any(row)]
    columns = sorted({at for row in table for at, cell in enumerate(row) if cell})
    table = [[row[at] if at < len(row) else "" for at in columns] for row in table]
    while table and (len(table) == 1 or sum(map(bool, table[0])) == 1):
        for cell in filter(None, table.pop(0)):
            out.write(cell)
            out.end_block()
    if table:
        write_rows(out, table[0], table[1:])


def write_rows(
    out: MarkdownWriter,
    header: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    first_row: int = 1,
) -> None:
    """Write a table in blocks that each have the header; see `table_blocks`."""
    for block in table_blocks(header, rows, first_row=first_row):
        out.lines(block.split("\n"))


_C = A.replace("/main}", "/chart}")
_CACHE_TAGS = tuple(f"{_C}{name}" for name in ("strCache", "numCache", "strLit", "numLit", "lvl"))


def write_chart(out: MarkdownWriter, root: Element) -> None:
    """Titles, then a row for each category with the values of all series."""
    for title in root.iter(f"{_C}title"):
        out.write("".join(node.text or "" for node in title.iter(f"{A}t")))
        out.end_block()
    series = list(root.iter(f"{_C}ser"))
    names = [" ".join(node.text or "" for node in one.iterfind(f"{_C}tx//{_C}v")) for one in series]
    values = [_series_values(one, "val", "yVal") for one in series]
    categories = next(
        (found for one in series if (found := _series_values(one, "cat", "xVal"))), {}
    )
    places = sorted(set(categories).union(*values))
    rows = ([categories.get(at, ""), *(found.get(at, "") for found in values)] for at in places)
    write_rows(out, ["Category", *names], rows)


def _series_values(series: Element, *names: str) -> dict[int, str]:
    """The chart's cached values by position; several levels are joined."""
    found: dict[int, str] = {}
    for node in (child for name in names for child in series.iterfind(f"{_C}{name}")):
        for cache in node.iter(*_CACHE_TAGS):
            code = cache.findtext(f"{_C}formatCode")
            for point in cache.iterfind(f"{_C}pt"):
                at, text = parse_integer(point.get("idx")), point.findtext(f"{_C}v") or ""
                with suppress(ValueError):  # only numbers have a format
                    text = format_number(float(text), code) if code else " ".join(text.split())
                found[at] = f"{text} {found[at]}" if at in found else text
    return found


_GENERATED_DESCRIPTIONS = (
    "automatically generated",
    "ai-generated content",
    "automatisch generiert",
)


def write_drawing(out: MarkdownWriter, package: OfficePackage, part: str) -> None:
    """Write everything in a sheet's drawing part."""
    root = package.xml(part)
    for text in drawing_paragraphs(root):
        out.write(text)
        out.end_block()
    write_graphics(out, package, part, root)


def write_graphics(out: MarkdownWriter, package: OfficePackage, part: str, node: Element) -> None:
    """Write diagrams and charts that `node`, an element of `part`, refers to."""
    references = []
    for element in without_alternatives(node):
        name = local_name(element)
        reference = element.get(f"{R}dm" if name == "relIds" else f"{R}id")
        if reference and name in {"relIds", "chart"}:
            references.append(reference)
    relations = package.related(part) if references else {}
    for reference in references:
        _, target = relations.get(reference, ("", ""))
        root = package.optional_xml(target)
        if root is None:
            continue
        if local_name(root) == "dataModel":
            out.lines([f"- {text}" for text in drawing_paragraphs(root)])
        else:
            write_chart(out, root)


def drawing_paragraphs(node: Element) -> Iterator[str]:
    """The text of each DrawingML paragraph that has any, on one line."""
    for element in without_alternatives(node):
        if element.tag == f"{A}p" and (text := drawing_paragraph_text(element)):
            yield text


def drawing_paragraph_text(paragraph: Element) -> str:
    """The runs of a paragraph on one line, without slide numbers."""
    parts = []
    for node in paragraph.iter(f"{A}t", f"{A}br", f"{M}t"):
        parent = node.getparent()
        if parent is None or parent.get("type") != "slidenum":
            parts.append(" " if node.tag == f"{A}br" else node.text or "")
    return single_line("".join(parts))


def picture_description(node: Element) -> str:
    """The author's description of a picture, not a generated one."""
    words = single_line(node.get("descr", ""))
    return "" if any(said in words.lower() for said in _GENERATED_DESCRIPTIONS) else words


def without_alternatives(node: Element) -> Iterator[Element]:
    """The element and its descendants, with one branch of each alternative."""
    yield node
    for child in alternative_content(node) if local_name(node) == "AlternateContent" else node:
        yield from without_alternatives(child)
