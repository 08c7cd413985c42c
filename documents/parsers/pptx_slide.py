"""One slide as Markdown: shapes in their order, lists by level, tables, diagrams, notes."""

from collections.abc import Iterable, Iterator

from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.office import Package
from documents.parsers.office_drawing import (
    description,
    paragraph_text,
    paragraphs,
    write_graphics,
)
from documents.parsers.office_lists import ListWriter
from documents.parsers.office_tables import cell_text, write_table
from documents.parsers.office_xml import A, Element, P, alternatives, integer, local_name

_SHAPES = f"{P}cSld/{P}spTree/*"
_TITLES = frozenset({"title", "ctrTitle"})
#: Placeholders of what stands on every slide.
_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
#: Placeholders whose paragraphs have bullets, unless they say otherwise.
_BULLETED = frozenset({"", "body", "obj"})
_BULLETS = frozenset({"buNone", "buChar", "buAutoNum", "buBlip"})


class Slide:
    """A slide's part, its shapes and its title."""

    def __init__(self, package: Package, part: str) -> None:
        self.package = package
        self.part = part
        self.root = package.xml(part)
        self.shapes = list(_shapes(self.root.iterfind(_SHAPES)))
        self.titled = [shape for shape in self.shapes if _placeholder(shape) in _TITLES]
        self.title = " ".join(text for shape in self.titled for text in paragraphs(shape))

    def notes(self) -> list[str]:
        """The paragraphs of the speaker's notes."""
        root = self.package.optional_xml(self.package.related_part(self.part, "notesslide"))
        shapes = [] if root is None else list(_shapes(root.iterfind(_SHAPES)))
        bodies = [shape for shape in shapes if _placeholder(shape) not in _FURNITURE]
        return [text for shape in bodies for text in paragraphs(shape)]


def write_title(out: MarkdownWriter, slide: Slide, number: int) -> int:
    """Returns where the slide begins.

    A slide without title is called by its number, else it would stand under the title of the one
    before. Slides of a title slide's layout stand above others.
    """
    level = 1 if any(_placeholder(shape) == "ctrTitle" for shape in slide.titled) else 2
    return out.heading(level, slide.title or f"Slide {number}")


def write_content(out: MarkdownWriter, slide: Slide) -> bool:
    """All but the title; False if there is nothing."""
    before = out.length
    for shape in slide.shapes:
        if shape not in slide.titled and _placeholder(shape) not in _FURNITURE:
            _write_shape(out, slide, shape)
    if notes := slide.notes():
        out.open("> ", "> ")
        out.write("Notes: ")
        for text in notes:
            out.write(text)
            out.end_line()
        out.end_block()
        out.close()
    return out.length > before


def _shapes(tree: Iterable[Element]) -> Iterator[Element]:
    """Shapes in the order in which a screen reader tells them, those of groups one by one."""
    for node in tree:
        match local_name(node):
            case "grpSp":
                yield from _shapes(node)
            case "AlternateContent":
                yield from _shapes(alternatives(node))
            case "sp" | "pic" | "graphicFrame" | "cxnSp":
                yield node


def _placeholder(shape: Element) -> str | None:
    """The type of placeholder that a shape fills: empty for the usual one, None for no such."""
    node = shape.find(f"*/{P}nvPr/{P}ph")
    return None if node is None else node.get("type", "")


def _write_shape(out: MarkdownWriter, slide: Slide, shape: Element) -> None:
    body, table = shape.find(f"{P}txBody"), shape.find(f".//{A}tbl")
    if body is not None:
        _write_text(out, body, bulleted=_placeholder(shape) in _BULLETED)
    elif table is not None:
        write_table(out, [_cells(row) for row in table.iterfind(f"{A}tr")])
    elif local_name(shape) == "graphicFrame":
        write_graphics(out, slide.package, slide.part, shape)
    else:
        properties = shape.find(f"*/{P}cNvPr")
        out.write("" if properties is None else description(properties))
        out.end_block()


def _write_text(out: MarkdownWriter, body: Element, *, bulleted: bool) -> None:
    """Paragraphs; those with bullets as list. Layouts give bullets to the usual placeholders."""
    lists = ListWriter(out)
    bulleted &= len(body) > 3  # two properties and one paragraph
    numbers: dict[int, int] = {}
    for paragraph in body.iterfind(f"{A}p"):
        text = paragraph_text(paragraph)
        if not text:
            continue
        properties = paragraph.find(f"{A}pPr")
        level = 0 if properties is None else integer(properties.get("lvl"))
        match _bullet(properties):
            case "buAutoNum":
                numbers = {at: count for at, count in numbers.items() if at <= level}
                numbers[level] = numbers.get(level, 0) + 1
                lists.item(level, f"{numbers[level]}.")
            case "buChar" | "buBlip":
                lists.item(level)
            case None if bulleted:
                lists.item(level)
            case _:
                lists.end()
        out.write(text)
    lists.end()


def _bullet(properties: Element | None) -> str | None:
    names = () if properties is None else map(local_name, properties)
    return next((name for name in names if name in _BULLETS), None)


def _cells(row: Element) -> list[str | None]:
    """None for a cell that the one above covers."""
    return [
        None if cell.get("vMerge") else cell_text(list(paragraphs(cell)))
        for cell in row.iterfind(f"{A}tc")
    ]
