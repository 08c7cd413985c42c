"""A passage in which to find what a model says stands in it. Pure."""

import re
from functools import cached_property

from common.spaceless import is_spaceless

#: Marks of Markdown and punctuation are not what a model changes on purpose.
_WORD = re.compile(r"[^\W_]+")


class Words:
    """The words of a text, and where they stand, whatever is between them."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _words(self) -> tuple[list[tuple[int, int]], str]:
        spans, parts = [], [""]
        for match in _WORD.finditer(self.text):
            spans.append(match.span())
            parts.append(match[0].casefold())
        return spans, " ".join([*parts, ""])

    def places(self, phrase: str) -> list[tuple[int, int]]:
        """Where the phrase stands, word for word; case and what is between words do not count.

        In scripts that part no words, letter for letter.
        """
        if is_spaceless(phrase):
            sought = re.escape(phrase.strip())
            return [match.span() for match in re.finditer(sought, self.text)] if sought else []
        words = " ".join(word.casefold() for word in _WORD.findall(phrase))
        if not words:
            return []
        spans, joined = self._words
        sought, size = f" {words} ", words.count(" ") + 1
        found, at = [], joined.find(sought)
        while at >= 0:
            first = joined.count(" ", 0, at)
            found.append((spans[first][0], spans[first + size - 1][1]))
            at = joined.find(sought, at + 1)
        return found
