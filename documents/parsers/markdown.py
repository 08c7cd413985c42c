"""Markdown: the source is the text; headings and front matter are read from it."""

import re
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING, Any

from documents.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from documents.parsers.metadata import (
    MetadataTooLargeError,
    json_safe,
    language_code,
    readable_title,
)
from documents.parsers.normalise import decode_text

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

MAX_LINES = 100_000

_FRONT_MATTER = re.compile(r"---[ \t]*\n(.{0,65536}?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.M | re.S)
_COMMENT = re.compile(r"\s*(?:<!--(?:(?!-->).)*-->\s*)+", re.S)


#: PyYAML takes quadratic time over brackets that are open.
_MAX_BRACKETS = 1_000
_MAX_MERGED = 10_000


class MarkdownParser:
    """CommonMark with tables; YAML front matter becomes metadata and leaves the text."""

    media_types: tuple[str, ...] = ("text/markdown",)
    suffixes: tuple[str, ...] = (".md", ".markdown", ".mdown", ".mkd")

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
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
    """The block tokens of CommonMark with tables; nothing inside a line is parsed.

    None for a text of more than 100,000 lines: that is data, and a line costs up to 0.1 ms and
    3 kB.
    """
    return _block_parser().parse(text) if text.count("\n") <= MAX_LINES else []


def without_comments(text: str) -> str:
    """The text without HTML comments that stand on lines of their own, which no reader sees."""
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
    """Where each line starts, and the end of the text: `token.map` indexes into it."""
    lines = text.split("\n")
    return [min(start, len(text)) for start in accumulate((len(s) + 1 for s in lines), initial=0)]


def markdown_headings(text: str) -> tuple[Heading, ...]:
    """Headings of the document itself: none of a code block, a quotation or a list item."""
    tokens, lines = markdown_blocks(text), line_offsets(text)
    return tuple(
        Heading(
            offset=lines[token.map[0]],
            level=int(token.tag[1:]),
            title=_plain(tokens[index + 1].content),
        )
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    )


def split_front_matter(text: str) -> tuple[dict[str, Any], str]:
    """Metadata and the rest; YAML that is broken or no mapping is text like any other."""
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
            if self.merged > _MAX_MERGED:
                raise MetadataTooLargeError

    try:
        values = json_safe(yaml.load(match[1], Loader))  # nosec B506  # noqa: S506 - a safe one
    except (yaml.YAMLError, MetadataTooLargeError, ValueError, RecursionError):
        return {}, text
    return (values, text[match.end() :]) if isinstance(values, dict) else ({}, text)


@cache
def _block_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415 (most commands read no Markdown)

    return MarkdownIt("commonmark").enable("table").disable("inline")


@cache
def _inline_parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt  # noqa: PLC0415

    return MarkdownIt("commonmark")


def _plain(source: str) -> str:
    """The words of one line of Markdown, without its marks."""
    children = _inline_parser().parseInline(source)[0].children or []
    words = (" " if child.type.endswith("break") else child.content for child in children)
    return " ".join("".join(words).split())
