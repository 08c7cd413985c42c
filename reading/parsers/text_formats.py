"""Formats whose source is the text: plain text, Markdown and reStructuredText. Headings, front
matter and fields are read from it; nothing is included, evaluated or fetched."""

import re
from collections.abc import Sequence
from functools import cache
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

from reading.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from reading.parsers.normalise import (
    MetadataTooLargeError,
    decode_nonblank,
    decode_text,
    json_safe,
    language_code,
    readable_title,
)

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


def parse_plain(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """The file's text is the document's text."""
    text = decode_nonblank(data)
    return ParsedDocument(text=text, media_type="text/plain", title=readable_title(name))


MAX_LINES = 100_000

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M | re.S)
_COMMENT = re.compile(r"\s*(?:<!--(?:(?!-->).)*-->\s*)+", re.S)


#: PyYAML takes quadratic time over brackets that are open.
_MAX_BRACKETS = 1_000
_MAX_MERGED_KEYS = 10_000


def parse_markdown(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """CommonMark with tables; YAML front matter becomes metadata and leaves the text."""
    metadata, text = split_front_matter(decode_text(data))
    text = without_comments(text)
    if not text.strip():
        raise ParseError("empty", "The file has no text. Check that it was saved.")
    headings = markdown_headings(text)
    first = next((heading.title for heading in headings if heading.level == 1), "")
    return ParsedDocument(
        text=text,
        media_type="text/markdown",
        title=str(metadata.get("title") or "").strip() or first or readable_title(name),
        rendering="markdown",
        headings=headings,
        metadata=metadata,
        language=language_code(metadata.get("lang") or metadata.get("language")),
    )


def markdown_blocks(text: str) -> "list[Token]":
    """The block tokens of CommonMark with tables; inline content is not parsed.

    Empty for a text of more than 100,000 lines: that is data, and a line costs up to 0.1 ms and 3
    kB.
    """
    return _commonmark(inline=False).parse(text) if text.count("\n") <= MAX_LINES else []


def without_comments(text: str) -> str:
    """The text without HTML comments on lines of their own, which are never displayed."""
    if "<!--" not in text:
        return text
    gone = {
        line
        for token in markdown_blocks(text)
        if token.type == "html_block" and token.map and _COMMENT.fullmatch(token.content)
        for line in range(*token.map)
    }
    return "\n".join(line for at, line in enumerate(text.split("\n")) if at not in gone)


def line_offsets(text: str) -> list[int]:
    """Start of each line, and the end of the text: `token.map` indexes into it."""
    lines = text.split("\n")
    return [min(start, len(text)) for start in accumulate((len(s) + 1 for s in lines), initial=0)]


def markdown_headings(text: str) -> tuple[Heading, ...]:
    """Headings of the document itself, not those in code blocks, quotations or list items."""
    tokens, lines = markdown_blocks(text), line_offsets(text)
    headings = []
    for token, content in pairwise(tokens):
        if token.type == "heading_open" and token.level == 0 and token.map:
            children = _commonmark(inline=True).parseInline(content.content)[0].children or []
            words = (" " if child.type.endswith("break") else child.content for child in children)
            title = " ".join("".join(words).split())
            headings.append(Heading(lines[token.map[0]], int(token.tag[1:]), title))
    return tuple(headings)


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Metadata and the remaining text; YAML that is invalid or no mapping stays text."""
    match = _FRONT_MATTER.match(text)
    if match is None:
        return {}, text
    if sum(map(match[1].count, "[{")) > _MAX_BRACKETS:
        return {}, text
    import yaml  # noqa: PLC0415 (who cuts or colours Markdown needs no front matter)

    class Loader(yaml.SafeLoader):
        """Safe, and with an end to merges: `<<` of mappings that merge others multiplies them."""

        merged = 0

        def flatten_mapping(self, node: yaml.MappingNode) -> None:
            super().flatten_mapping(node)
            self.merged += len(node.value)
            if self.merged > _MAX_MERGED_KEYS:
                raise MetadataTooLargeError

    try:
        values = json_safe(yaml.load(match[1], Loader))  # nosec B506  # noqa: S506 - a safe one
    except (yaml.YAMLError, MetadataTooLargeError, ValueError, RecursionError):
        return {}, text
    return (values, text[match.end() :]) if isinstance(values, dict) else ({}, text)


@cache
def _commonmark(*, inline: bool) -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 (most commands read no Markdown)

    parser = MarkdownIt("commonmark")
    return parser if inline else parser.enable("table").disable("inline")


MAX_RST_HEADINGS = 20_000
_MAX_TITLE = 300
_MAX_FIELDS = 50
_MAX_FIELD_CHARACTERS = 1_000

_ADORNMENT = re.compile(r"([!-/:-@\[-`{-~])\1+")
_FIELD_LINE = re.compile(r":([^:\s](?:[^:\n]{0,60}[^:\s])?):(?:\s+(.*))?")
_TITLE_DIRECTIVE = re.compile(r"^\.\. title::[ \t]+(\S.{0,300})$", re.M)

_ROLE = re.compile(r":[a-zA-Z][\w:+.-]{0,60}:(?=`)")
_TARGET = re.compile(r"`([^`<]{1,300}?)\s*<[^`<>]{1,500}>`_{0,2}")
_INLINE_MARKUP = re.compile(r"``(.+?)``|`(.+?)`_{0,2}|\*\*(.+?)\*\*|\*(.+?)\*|\|(.+?)\|_{0,2}")


def parse_rst(data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
    """Section titles, the field list at the top, and the source text."""
    text = decode_nonblank(data)
    headings = rst_headings(text)
    given = _TITLE_DIRECTIVE.search(text)
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
    """Section titles: each adornment style is a level, in the order of appearance."""
    lines, offsets = text.split("\n"), line_offsets(text)
    styles: list[tuple[str, bool]] = []
    headings = []
    at = 0
    while at < len(lines):
        is_framed = _is_overlined_title(lines, at)
        if is_framed or _is_underlined_title(lines, at):
            style = (lines[at + 1 + is_framed][0], is_framed)
            if style not in styles:
                styles.append(style)
            # Without roles, targets and inline markup.
            title = _TARGET.sub(r"\1", _ROLE.sub("", lines[at + is_framed]))
            title = _INLINE_MARKUP.sub(lambda match: next(filter(None, match.groups())), title)
            title = " ".join(title.replace("\\", "").split())
            headings.append(Heading(offsets[at], styles.index(style) + 1, title))
            at += 1 + is_framed
        at += 1
    return tuple(headings) if len(headings) <= MAX_RST_HEADINGS else ()


def rst_fields(text: str) -> dict[str, str]:
    """The field list at the top, after comments and the title: `:Author: Ada` and the like."""
    lines = text.split("\n", 400)
    fields: dict[str, str] = {}
    # The first line that is neither blank, comment, target nor the document's title.
    at = 0
    has_title = False
    while at < len(lines):
        is_framed = _is_overlined_title(lines, at)
        if not has_title and (is_framed or _is_underlined_title(lines, at)):
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
    name = ""
    while at < len(lines) and len(fields) < _MAX_FIELDS:
        field = _FIELD_LINE.fullmatch(lines[at].rstrip())
        if field:
            name = field[1].strip().lower()
            fields[name] = field[2] or ""
        elif name and lines[at][:1].isspace() and lines[at].strip():
            fields[name] = f"{fields[name]} {lines[at].strip()}".strip()
        else:
            break
        at += 1
    return {name: value.strip()[:_MAX_FIELD_CHARACTERS] for name, value in fields.items()}


def _is_overlined_title(lines: Sequence[str], at: int) -> bool:
    """Whether a title with overline and underline begins here."""
    if at + 2 >= len(lines) or not _begins_paragraph(lines, at):
        return False
    over, title, under = (line.rstrip() for line in lines[at : at + 3])
    return (
        over == under and _is_adornment_of(over, title.strip()) and not _ADORNMENT.fullmatch(title)
    )


def _is_underlined_title(lines: Sequence[str], at: int) -> bool:
    """Whether a title with an underline is here."""
    if at + 1 >= len(lines) or not _begins_paragraph(lines, at) or lines[at][:1].isspace():
        return False
    title, under = lines[at].rstrip(), lines[at + 1].rstrip()
    return _is_adornment_of(under, title) and not _ADORNMENT.fullmatch(title)


def _begins_paragraph(lines: Sequence[str], at: int) -> bool:
    return bool(lines[at].strip()) and (at == 0 or not lines[at - 1].strip())


def _is_adornment_of(line: str, title: str) -> bool:
    """Whether the line adorns the title. It may be somewhat shorter, a common mistake."""
    is_long = len(line) >= min(4, len(title)) > 0
    return is_long and len(title) <= _MAX_TITLE and _ADORNMENT.fullmatch(line) is not None
