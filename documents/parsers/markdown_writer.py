"""Writes Markdown block by block, with the indentation of the lists and quotations it is in."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from documents.parsers.base import Heading
from documents.parsers.html_text import clean

#: What would turn a paragraph, or the one above it, into something else. Lines that look like
#: list items or quotations stay: rendered as such they read the same.
_MISREAD = re.compile(r"(?:#{1,6}(?:\s|$)|```|~~~|[=-]+$)")
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
    """Inline text gathers until a block ends; `finish` gives the whole and its headings."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._headings: list[Heading] = []
        self._inline: list[str] = []
        self._containers: list[_Container] = []
        self._lists_with_items: list[bool] = []

    def write(self, text: str) -> None:
        """Inline text; white space of the source is worth one space."""
        if text:
            self._inline.append(_SPACE.sub(" ", clean(text)))

    def end_line(self) -> None:
        self._inline.append("\n")

    def end_block(self) -> None:
        """What was written so far is a paragraph."""
        lines = ("".join(self._inline)).split("\n")
        self._inline.clear()
        words = (" ".join(line.split()) for line in lines)
        self._emit([_escaped(line) for line in words if line])

    @property
    def length(self) -> int:
        """Characters of the blocks that are finished."""
        return self._length

    def heading(self, level: int, title: str) -> int:
        """Where its line begins; without a title there is none."""
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
        """A block of finished Markdown."""
        self.end_block()
        self._emit(lines)

    def embed(self, text: str, headings: Iterable[Heading]) -> None:
        """A whole document that another writer has finished; not within a list or quotation."""
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
        gap = "\n" if self._continues_list() else "\n\n"
        if self._parts:
            self._append(gap)
        offset = self._length
        first, rest = self._prefix(), self._prefix()
        prefixed = [first + lines[0], *(rest + line for line in lines[1:])]
        self._append("\n".join(line.rstrip() for line in prefixed))
        return offset

    def _prefix(self) -> str:
        return "".join([container.prefix() for container in self._containers][:_MAX_INDENT])

    def _continues_list(self) -> bool:
        """A new item of a list that has begun, or of one inside an item, follows at once."""
        fresh = bool(self._containers) and not self._containers[-1].used
        tight = fresh and bool(self._lists_with_items) and self._lists_with_items[-1]
        if fresh and self._lists_with_items:
            self._lists_with_items[-1] = True
        return tight

    def _append(self, text: str) -> None:
        self._parts.append(text)
        self._length += len(text)


def _escaped(line: str) -> str:
    return f"\\{line}" if _MISREAD.match(line) else line
