"""Word: the text in its order, with headings, lists, tables, notes and text boxes."""

from typing import Any

from documents.parsers.base import DEFAULT_LIMITS, Limits, ParsedDocument, ParseError
from documents.parsers.docx_body import Body
from documents.parsers.metadata import language_code, readable_title
from documents.parsers.office import Package, open_package, sole_heading, stated_title
from documents.parsers.office_xml import W

MEDIA_TYPE = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


class DocxParser:
    """Documents and templates, with macros or not.

    What is not read: deleted and hidden text, reviewers' comments, the table of contents, which
    repeats the headings, and page numbers. Heads and feet of pages come once, first.
    """

    media_types: tuple[str, ...] = (MEDIA_TYPE,)
    suffixes: tuple[str, ...] = (".docx", ".docm", ".dotx", ".dotm")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        with open_package(data, limits) as package:
            return _parse(package, name, limits)


def _parse(package: Package, name: str, limits: Limits) -> ParsedDocument:
    body = Body(package)
    body.running_lines()
    for node in package.stream(package.main, (f"{W}body", "*")):
        body.block(node)
        if body.out.length > limits.max_characters:
            raise ParseError(
                "too_large",
                f"The document has more than {limits.max_characters:,} characters. Split it.",
            )
    text, headings = body.finish()
    if not text.strip():
        raise ParseError(
            "no_text",
            "The document has no text, perhaps only pictures of it. Run OCR on them first.",
        )
    metadata = _metadata(package)
    return ParsedDocument(
        text=text,
        media_type=MEDIA_TYPE,
        title=body.title
        or stated_title(metadata)
        or sole_heading(headings)
        or readable_title(name),
        rendering="markdown",
        headings=headings,
        metadata=metadata,
        language=language_code(metadata.get("language")),
    )


def _metadata(package: Package) -> dict[str, Any]:
    """The document's properties, and how many comments were left out."""
    comments = package.optional_xml(package.related_part(package.main, "comments"))
    count = 0 if comments is None else len(comments)
    return package.properties() | ({"comments": count} if count else {})
