"""Paragraphs with a list level, as Office has them, in the nested lists that Markdown has."""

import re

from documents.parsers.markdown_writer import MarkdownWriter

_MARKDOWN_NUMBER = re.compile(r"[0-9]{1,9}[.)]")


class ListWriter:
    """`item` opens one, the text is written after it; `end` closes all."""

    def __init__(self, out: MarkdownWriter) -> None:
        self._out = out
        self._depth = 0

    def item(self, level: int, label: str = "") -> None:
        """An item of `level`, from 0; `label` is its number as shown, such as `2.` or `(a)`."""
        self._out.end_block()
        level = min(level, self._depth)
        while self._depth > level + 1:
            self._close()
        if self._depth > level:
            self._out.close()
        else:
            self._out.open_list()
            self._depth += 1
        marker = f"{label} " if _MARKDOWN_NUMBER.fullmatch(label) else "- "
        self._out.open(marker, " " * len(marker))
        if marker == "- " and label:
            self._out.write(f"{label} ")

    def end(self) -> None:
        self._out.end_block()
        while self._depth:
            self._close()

    def _close(self) -> None:
        self._out.close()
        self._out.close_list()
        self._depth -= 1
