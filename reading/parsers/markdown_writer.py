"""From elements to Markdown: HTML tag names by their meaning for the text, the text of one element
on one line, and `MarkdownWriter`, which writes block by block, indented for enclosing lists and
quotations."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from lxml import etree
from lxml.html import HtmlElement

from reading.parsers.base import Heading
from reading.parsers.normalise import without_invisible

# One string each: a list of words reads better on four lines than on forty.
# ruff: noqa: SIM905

NON_TEXT_TAGS = (
    "script style template noscript svg math iframe object embed applet canvas audio video map "
    "button select textarea input datalist dialog"
).split()
BOILERPLATE_ROLES = frozenset("navigation banner contentinfo complementary search".split())

HEADING_TAGS = frozenset("h1 h2 h3 h4 h5 h6".split())
LIST_TAGS = frozenset("ul ol menu dir".split())
CODE_TAGS = frozenset("code kbd samp tt".split())
BLOCK_TAGS = LIST_TAGS | frozenset(
    "html body div p section article main header footer aside nav address figure figcaption "
    "details summary fieldset legend form dl dt dd hr center table thead tbody tfoot tr td th "
    "caption hgroup label blockquote li".split()
)
#: Elements that make a table a means of layout when one of its cells holds them.
LAYOUT_CELL_TAGS = "h1 h2 h3 h4 h5 h6 ul ol dl pre blockquote table".split()
#: Elements that separate words when everything is written on one line.
SEPARATING_TAGS = frozenset("br p div li dt dd tr td th h1 h2 h3 h4 h5 h6 section article".split())


def element_text(element: HtmlElement) -> str:
    """Text with single spaces between words; inline markup is dropped, images give their
    alternative text."""
    parts: list[str] = []
    for event, node in etree.iterwalk(element, events=("start", "end")):
        if node.tag in SEPARATING_TAGS:
            parts.append(" ")
        if event == "start":
            parts += [node.get("alt", "") if node.tag == "img" else "", node.text or ""]
        elif node is not element:
            parts.append(node.tail or "")
    return single_line("".join(parts))


def single_line(text: str) -> str:
    """The words with single spaces between them, without soft hyphens."""
    return " ".join(without_invisible(text).split())


#: Lines that Markdown would not read as part of a paragraph. Lines that look like
#: list items or quotations stay: rendered as such they read the same.
_BLOCK_MARKUP = re.compile(r"(?:#{1,6}(?:\s|$)|```|~~~|[=-]+$)")
_SPACE = re.compile(r"\s+")
#: Deeper nesting is hostile or meaningless, and each level would lengthen every line.
_MAX_INDENT = 8


@dataclass(slots=True)
class _Container:
    marker: str
    indent: str
    used: bool = False

    def prefix(self) -> str:
        text, self.used = (self.indent if self.used else self.marker), True
        return text


class MarkdownWriter:
    """Writes Markdown block by block, indented for enclosing lists and quotations. Inline text is
    collected until a block ends; `finish` returns text and headings."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._inline: list[str] = []
        self._containers: list[_Container] = []
        self._lists_with_items: list[bool] = []

    def write(self, text: str) -> None:
        """Add inline text; white space collapses to one space."""
        if text:
            self._inline.append(_SPACE.sub(" ", without_invisible(text)))

    def end_line(self) -> None:
        self._inline.append("\n")

    def end_block(self) -> None:
        """End the current paragraph, if there is one."""
        lines = "".join(self._inline).split("\n")
        self._inline.clear()
        words = (" ".join(line.split()) for line in lines)
        self._emit([(f"\\{line}" if _BLOCK_MARKUP.match(line) else line) for line in words if line])

    def paragraph(self, text: str) -> None:
        """Write a block of text, with its line breaks."""
        for line in text.split("\n"):
            self.write(line)
            self.end_line()
        self.end_block()

    @property
    def length(self) -> int:
        """Number of characters in finished blocks."""
        return self._length

    def heading(self, level: int, title: str) -> int:
        """Write a heading and return its offset; without a title nothing is written."""
        self.end_block()
        if not title:
            return self._length
        offset = self._emit([f"{'#' * level} {title}"])
        self._headings.append(Heading(offset, level, title))
        return offset

    def code(self, text: str, *, language: str) -> None:
        self.end_block()
        text = text.expandtabs(4).strip("\n").rstrip()
        if text.strip():
            longest = max((len(run) for run in re.findall("`+", text)), default=0)
            fence = "`" * max(3, longest + 1)
            self._emit([fence + language, *text.split("\n"), fence])

    def lines(self, lines: list[str]) -> None:
        """Add a block of finished Markdown."""
        self.end_block()
        self._emit(lines)

    def embed(self, text: str, headings: Iterable[Heading]) -> None:
        """Add a complete document of another writer; not within a list or quotation."""
        self.end_block()
        start = self._emit(text.strip("\n").split("\n"))
        self._headings += [replace(mark, offset=mark.offset + start) for mark in headings]

    def open(self, marker: str, indent: str) -> None:
        self._containers.append(_Container(marker, indent))

    def close(self) -> None:
        self._containers.pop()

    def open_list(self) -> None:
        self._lists_with_items.append(bool(self._containers))

    def close_list(self) -> None:
        self._lists_with_items.pop()

    def finish(self) -> tuple[str, tuple[Heading, ...]]:
        self.end_block()
        return "".join(self._parts) + "\n" * bool(self._parts), tuple(self._headings)

    def _emit(self, lines: list[str]) -> int:
        """Append a block; gives the offset of its first line."""
        if not lines:
            return self._length
        # Whether a further item of the current list, or of one nested in it, follows without a
        # blank line.
        fresh = bool(self._containers) and not self._containers[-1].used
        continues_list = fresh and bool(self._lists_with_items) and self._lists_with_items[-1]
        if fresh and self._lists_with_items:
            self._lists_with_items[-1] = True
        gap = "\n" if continues_list else "\n\n"
        if self._parts:
            self._append(gap)
        offset = self._length
        first, rest = self._prefix(), self._prefix()
        prefixed = [first + lines[0], *(rest + line for line in lines[1:])]
        self._append("\n".join(line.rstrip() for line in prefixed))
        return offset

    def _prefix(self) -> str:
        return "".join([container.prefix() for container in self._containers][:_MAX_INDENT])

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)
