"""reStructuredText: the source is the text; section titles and fields are read from it.

Directives are text like any other: nothing is included, evaluated or fetched.
"""

import re
from collections.abc import Sequence

from documents.parsers.base import DEFAULT_LIMITS, Heading, Limits, ParsedDocument, ParseError
from documents.parsers.markdown import line_offsets
from documents.parsers.metadata import language_code, readable_title
from documents.parsers.normalise import decode_text

MAX_HEADINGS = 20_000
_MAX_TITLE = 300
_MAX_FIELDS = 50
_MAX_FIELD_CHARACTERS = 1_000

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_FIELD = re.compile(r":([^:\s](?:[^:\n]{0,60}[^:\s])?):(?:\s+(.*))?")
_GIVEN_TITLE = re.compile(r"^\.\. title::[ \t]+(\S.{0,300})$", re.M)

_ROLE = re.compile(r":[a-zA-Z][\w:+.-]{0,60}:(?=`)")
_TARGET = re.compile(r"`([^`<]{1,300}?)\s*<[^`<>]{1,500}>`_{0,2}")
_MARKS = re.compile(r"``(.+?)``|`(.+?)`_{0,2}|\*\*(.+?)\*\*|\*(.+?)\*|\|(.+?)\|_{0,2}")


class RstParser:
    """Sections, the fields at the top, and the text as it was written."""

    media_types: tuple[str, ...] = ("text/x-rst",)
    suffixes: tuple[str, ...] = (".rst", ".rest")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        text = decode_text(data)
        if not text.strip():
            raise ParseError("empty", "The file has no text. Check that it was saved.")
        headings = rst_headings(text)
        given = _GIVEN_TITLE.search(text)
        fields = rst_fields(text)
        return ParsedDocument(
            text=text,
            media_type="text/x-rst",
            title=(given[1].strip() if given else "")
            or next((heading.title for heading in headings), "")
            or readable_title(name),
            headings=headings,
            metadata=fields,
            language=language_code(fields.get("lang") or fields.get("language")),
        )


def rst_headings(text: str) -> tuple[Heading, ...]:
    """Section titles: each way of adornment is a level, in the order in which they appear."""
    lines, offsets = text.split("\n"), line_offsets(text)
    styles: list[tuple[str, bool]] = []
    headings = []
    at = 0
    while at < len(lines):
        is_framed = _is_framed(lines, at)
        if is_framed or _is_underlined(lines, at):
            style = (lines[at + 1 + is_framed][0], is_framed)
            if style not in styles:
                styles.append(style)
            title = _plain(lines[at + is_framed])
            headings.append(Heading(offsets[at], styles.index(style) + 1, title))
            at += 1 + is_framed
        at += 1
    return tuple(headings) if len(headings) <= MAX_HEADINGS else ()


def rst_fields(text: str) -> dict[str, str]:
    """The field list at the top, behind comments and the title: `:Author: Ada` and the like."""
    lines = text.split("\n", 400)
    fields: dict[str, str] = {}
    at = _top(lines)
    name = ""
    while at < len(lines) and len(fields) < _MAX_FIELDS:
        field = _FIELD.fullmatch(lines[at].rstrip())
        if field:
            name = field[1].strip().lower()
            fields[name] = field[2] or ""
        elif name and lines[at][:1].isspace() and lines[at].strip():
            fields[name] = f"{fields[name]} {lines[at].strip()}".strip()
        else:
            break
        at += 1
    return {name: value.strip()[:_MAX_FIELD_CHARACTERS] for name, value in fields.items()}


def _top(lines: Sequence[str]) -> int:
    """The first line that is neither blank, comment, target nor the document's title."""
    at = 0
    has_title = False
    while at < len(lines):
        is_framed = _is_framed(lines, at)
        if not has_title and (is_framed or _is_underlined(lines, at)):
            at += 2 + is_framed
            has_title = True
        elif not lines[at].strip():
            at += 1
        elif lines[at].startswith(".."):
            at += 1
            while at < len(lines) and lines[at][:1].isspace():
                at += 1
        else:
            break
    return at


def _is_framed(lines: Sequence[str], at: int) -> bool:
    """A title between two equal lines begins here."""
    if at + 2 >= len(lines) or not _begins_paragraph(lines, at):
        return False
    over, title, under = (line.rstrip() for line in lines[at : at + 3])
    return over == under and _adorns(over, title.strip()) and not _ADORNMENT.fullmatch(title)


def _is_underlined(lines: Sequence[str], at: int) -> bool:
    """A title with a line below it is here."""
    if at + 1 >= len(lines) or not _begins_paragraph(lines, at) or lines[at][:1].isspace():
        return False
    title, under = lines[at].rstrip(), lines[at + 1].rstrip()
    return _adorns(under, title) and not _ADORNMENT.fullmatch(title)


def _begins_paragraph(lines: Sequence[str], at: int) -> bool:
    return bool(lines[at].strip()) and (at == 0 or not lines[at - 1].strip())


def _adorns(line: str, title: str) -> bool:
    """Shorter than the title it may be, as writers forget, but not by chance."""
    is_long = len(line) >= min(4, len(title)) > 0
    return is_long and len(title) <= _MAX_TITLE and _ADORNMENT.fullmatch(line) is not None


def _plain(title: str) -> str:
    """Without roles, targets and marks."""
    words = _TARGET.sub(r"\1", _ROLE.sub("", title))
    words = _MARKS.sub(lambda match: next(group for group in match.groups() if group), words)
    return " ".join(words.replace("\\", "").split())
