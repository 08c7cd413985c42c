"""PowerPoint: each slide a page with its title as heading, its text, tables, diagrams and notes."""

from collections.abc import Iterable, Iterator

from reading.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from reading.parsers.markdown_writer import MarkdownWriter, single_line
from reading.parsers.office_content import (
    FROM_LEFT,
    LETTER,
    ListWriter,
    cell_text,
    drawing_paragraph_text,
    drawing_paragraphs,
    picture_description,
    write_graphics,
    write_table,
)
from reading.parsers.office_package import (
    A,
    Element,
    OfficePackage,
    P,
    R,
    alternative_content,
    is_true,
    local_name,
    office_document,
    parse_integer,
)
from reading.parsers.zip_archive import open_zip

_SHAPES = f"{P}cSld/{P}spTree/*"
_TITLE_TYPES = frozenset({"title", "ctrTitle"})
#: Placeholders of what is repeated on every slide.
_SLIDE_FURNITURE = frozenset({"sldNum", "dt", "ftr", "hdr", "sldImg"})
#: Placeholders whose paragraphs have bullets, unless they say otherwise.
_BULLETED = frozenset({"", "body", "obj"})
#: Text that a field, such as the date, does not compute.
_TYPED = f"{P}txBody/{A}p/{A}r/{A}t"
_BULLETS = frozenset({"buNone", "buChar", "buAutoNum", "buBlip"})


class Slide:
    """A slide's part, its shapes and its title."""

    def __init__(self, package: OfficePackage, part: str) -> None:
        self.package = package
        self.part = part
        self.root = package.xml(part)
        self.shapes = list(_shapes(self.root.iterfind(_SHAPES)))
        self.titled = [shape for shape in self.shapes if _placeholder_type(shape) in _TITLE_TYPES]
        self.title = " ".join(text for shape in self.titled for text in drawing_paragraphs(shape))

    def inherited(self, seen: set[str]) -> Iterator[str]:
        """What people typed on its layout and master beside the placeholders; from each part once,
        which is then `seen`."""
        part, root = self.part, self.root
        for kind in ("slidelayout", "slidemaster"):
            above = self.package.related_part(part, kind)
            if above is None or above in seen or not is_true(root.get("showMasterSp")):
                return
            seen.add(above)
            part, root = above, self.package.xml(above)
            for shape in _shapes(root.iterfind(_SHAPES)):
                if _placeholder_type(shape) is None:
                    yield single_line(" ".join(drawing_paragraphs(shape)))

    def notes(self) -> list[str]:
        """The paragraphs of the speaker's notes."""
        root = self.package.optional_xml(self.package.related_part(self.part, "notesslide"))
        shapes = [] if root is None else list(_shapes(root.iterfind(_SHAPES)))
        bodies = [shape for shape in shapes if _placeholder_type(shape) not in _SLIDE_FURNITURE]
        return [text for shape in bodies for text in drawing_paragraphs(shape)]


def _cell(cell: Element) -> str | None:
    """As `write_table` takes it."""
    if cell.get("vMerge"):
        return None
    if cell.get("hMerge"):
        return FROM_LEFT
    return cell_text(list(drawing_paragraphs(cell)))


def write_content(out: MarkdownWriter, slide: Slide, seen: set[str]) -> bool:
    """Write everything except the title, and what is on many slides, such as a footer, where it is
    not `seen` yet; False if there is nothing."""
    before = out.length
    for shape in slide.shapes:
        if _placeholder_type(shape) in _SLIDE_FURNITURE:
            typed = single_line(" ".join(node.text or "" for node in shape.iterfind(_TYPED)))
            if typed and typed not in seen:
                seen.add(typed)
                out.paragraph(typed)
        elif shape not in slide.titled:
            body, table = shape.find(f"{P}txBody"), shape.find(f".//{A}tbl")
            if body is not None:
                _write_text(out, body, bulleted=_placeholder_type(shape) in _BULLETED)
            elif table is not None:
                rows = [
                    [_cell(cell) for cell in row.iterfind(f"{A}tc")]
                    for row in table.iterfind(f"{A}tr")
                ]
                write_table(out, rows)
            elif local_name(shape) == "graphicFrame":
                write_graphics(out, slide.package, slide.part, shape)
            else:
                properties = shape.find(f"*/{P}cNvPr")
                out.write("" if properties is None else picture_description(properties))
                out.end_block()
    for text in slide.inherited(seen):
        if LETTER.search(text) and text not in seen:
            seen.add(text)
            out.paragraph(text)
    if notes := slide.notes():
        out.open("> ", "> ")
        out.paragraph("\n".join(["Notes: " + notes[0], *notes[1:]]))
        out.close()
    return out.length > before


def _shapes(tree: Iterable[Element]) -> Iterator[Element]:
    """Shapes in screen reader order, with groups flattened."""
    for node in tree:
        match local_name(node):
            case "grpSp":
                yield from _shapes(node)
            case "AlternateContent":
                yield from _shapes(alternative_content(node))
            case "sp" | "pic" | "graphicFrame" | "cxnSp":
                yield node


def _placeholder_type(shape: Element) -> str | None:
    """The placeholder type of a shape: empty for the default type, None for no placeholder."""
    node = shape.find(f"*/{P}nvPr/{P}ph")
    return None if node is None else node.get("type", "")


def _write_text(out: MarkdownWriter, body: Element, *, bulleted: bool) -> None:
    """Paragraphs; those with bullets as list. Layouts give bullets to the usual placeholders."""
    lists = ListWriter(out)
    bulleted &= len(body) > 3  # two properties and one paragraph
    numbers: dict[int, int] = {}
    for paragraph in body.iterfind(f"{A}p"):
        text = drawing_paragraph_text(paragraph)
        if not text:
            continue
        properties = paragraph.find(f"{A}pPr")
        level = 0 if properties is None else parse_integer(properties.get("lvl"))
        names = () if properties is None else map(local_name, properties)
        bullet_label = next((name for name in names if name in _BULLETS), None)
        match bullet_label:
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


MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


def parse_pptx(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Presentations, shows and templates, with or without macros.

    Hidden slides are read too, because everybody who opens the file sees them; the metadata lists
    them.
    """
    with open_zip(data, limits) as archive:
        package = OfficePackage(archive)
        out = MarkdownWriter()
        pages: list[Page] = []
        titles: list[str] = []
        hidden: list[int] = []
        seen: set[str] = set()
        has_text = False
        root, relations = package.xml(package.main), package.related(package.main)
        ids = (node.get(f"{R}id", "") for node in root.iterfind(f"{P}sldIdLst/{P}sldId"))
        targets = (relations[each][1] for each in ids if each in relations)
        parts = (target for target in targets if target in package)
        for number, part in enumerate(parts, start=1):
            if number > limits.max_pages:
                raise ParseError(
                    "too_large",
                    f"The presentation has more than {limits.max_pages:,} slides. Split it.",
                )
            slide = Slide(package, part)
            if not is_true(slide.root.get("show")):
                hidden.append(number)
            # A slide without title is called by its number, else it would belong to the
            # previous slide's heading. Title layouts have a higher level.
            kinds = {_placeholder_type(shape) for shape in slide.titled}
            level = 1 if "ctrTitle" in kinds else 2
            offset = out.heading(level, slide.title or f"Slide {number}")
            has_text |= write_content(out, slide, seen) or bool(slide.title)
            pages.append(Page(offset, number))
            titles.append(slide.title)
        if not has_text:
            raise ParseError(
                "no_text",
                "The slides have no text, perhaps only pictures. Run OCR on them first.",
            )
        metadata = package.properties() | ({"hidden_slides": hidden} if hidden else {})
        return office_document(
            out.finish(),
            name=name,
            media_type=MEDIA_TYPE,
            metadata=metadata,
            fallback_title=titles[0],
            pages=pages,
        )
