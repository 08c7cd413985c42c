"""PowerPoint: each slide a page with its title as heading, its text, tables, and notes."""

from collections.abc import Iterator

from documents.parsers.base import DEFAULT_LIMITS, Limits, Page, ParsedDocument, ParseError
from documents.parsers.markdown_writer import MarkdownWriter
from documents.parsers.metadata import language_code, readable_title
from documents.parsers.office import Package, open_package, stated_title
from documents.parsers.office_xml import P, R, switched_on
from documents.parsers.pptx_slide import Slide, write_content, write_title

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.presentationml.presentation"


class PptxParser:
    """Presentations, shows and templates, with macros or not.

    Hidden slides are read like others, as everybody who opens the file sees them; the metadata
    names them.
    """

    media_types: tuple[str, ...] = (MEDIA_TYPE,)
    suffixes: tuple[str, ...] = (".pptx", ".pptm", ".ppsx", ".ppsm", ".potx", ".potm")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with open_package(data, limits) as package:
            return _parse(package, name, limits)


def _parse(package: Package, name: str, limits: Limits) -> ParsedDocument:
    out = MarkdownWriter()
    pages: list[Page] = []
    titles: list[str] = []
    hidden: list[int] = []
    has_text = False
    for number, part in enumerate(_slide_parts(package), start=1):
        if number > limits.max_pages:
            raise ParseError(
                "too_large", f"The deck has more than {limits.max_pages:,} slides. Split it."
            )
        slide = Slide(package, part)
        if not switched_on(slide.root.get("show")):
            hidden.append(number)
        offset = write_title(out, slide, number)
        has_text |= write_content(out, slide) or bool(slide.title)
        pages.append(Page(offset, number))
        titles.append(slide.title)
    if not has_text:
        raise ParseError(
            "no_text", "The slides have no text, perhaps they are pictures. Run OCR on them first."
        )
    text, headings = out.finish()
    metadata = package.properties() | ({"hidden_slides": hidden} if hidden else {})
    return ParsedDocument(
        text=text,
        media_type=MEDIA_TYPE,
        title=stated_title(metadata) or titles[0] or readable_title(name),
        rendering="markdown",
        headings=headings,
        pages=tuple(pages),
        metadata=metadata,
        language=language_code(metadata.get("language")),
    )


def _slide_parts(package: Package) -> Iterator[str]:
    """In the order of the show."""
    root = package.xml(package.main)
    relations = package.related(package.main)
    for node in root.iterfind(f"{P}sldIdLst/{P}sldId"):
        relation = relations.get(node.get(f"{R}id", ""))
        if relation and relation.target in package:
            yield relation.target
