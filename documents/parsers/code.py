"""Source code and files of settings: the text as it is, classes and functions as headings."""

import re
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from documents.code_languages import LANGUAGES, CodeLanguage
from documents.parsers.base import (
    DEFAULT_LIMITS,
    Heading,
    Limits,
    ParsedDocument,
    ParseError,
)
from documents.parsers.code_blocks import CodeBlock, code_blocks
from documents.parsers.normalise import decode_text, normalise_text

#: Data written as code may have more names than text.
MAX_HEADINGS = 20_000
_SAYS_NOTHING = re.compile(r"[\s\])};,]*(?:\bend\b[\s;]*)*\Z")


class CodeParser:
    """One language. A chunk's heading path is `Class > method`."""

    def __init__(self, language: CodeLanguage) -> None:
        self.language = language
        self.media_types: tuple[str, ...] = (language.media_type,)
        self.suffixes: tuple[str, ...] = language.suffixes

    def parse(self, data: bytes, *, name: str, limits: Limits = DEFAULT_LIMITS) -> ParsedDocument:
        text = decode_text(data)
        if not text.strip():
            raise ParseError("empty", "The file has no text. Check that it was saved.")
        title = file_title(name)
        return ParsedDocument(
            text=text,
            media_type=self.language.media_type,
            title=title,
            headings=block_headings(text, code_blocks(text, self.language.name), title=title),
            metadata={"language_name": self.language.label},
        )


CODE_PARSERS: tuple[CodeParser, ...] = tuple(
    CodeParser(language) for language in LANGUAGES if language.name != "sql"
)


def file_title(name: str) -> str:
    """The file's own name: to those who look for code its suffix is part of it."""
    return normalise_text(PurePosixPath(name.replace("\\", "/")).name).strip() or "Untitled"


def block_headings(text: str, blocks: Sequence[CodeBlock], *, title: str) -> tuple[Heading, ...]:
    """A heading where each block begins, and where the text goes on behind the blocks in one.

    Such a rest stands under the block around it again, at the outermost under `title`.
    """
    if len(blocks) > MAX_HEADINGS:
        return ()
    headings: list[Heading] = []
    around: list[CodeBlock] = []
    for block in blocks:
        headings += _left(text, around, block.start, title)
        headings.append(Heading(block.start, block.level, block.name))
        around.append(block)
    headings += _left(text, around, len(text), title)
    return tuple(headings)


def _left(text: str, around: list[CodeBlock], upto: int, title: str) -> Iterator[Heading]:
    """Closes the blocks that end before `upto`; a heading for each rest behind them."""
    while around and around[-1].end <= upto:
        left = around.pop()
        end = min(upto, around[-1].end) if around else upto
        rest = text[left.end : end]
        if not _SAYS_NOTHING.match(rest):
            outer = around[-1].name if around else title
            yield Heading(_first_line(text, left.end, end), max(1, left.level - 1), outer)


def _first_line(text: str, start: int, end: int) -> int:
    """Start of the first line with anything on it; `start` where that is on its own line."""
    shown = start + len(text[start:end]) - len(text[start:end].lstrip())
    return max(start, text.rfind("\n", start, shown) + 1)
