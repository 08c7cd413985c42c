"""Texts of templates that are not marked for translation."""

import re
from collections.abc import Iterator
from html.parser import HTMLParser

_MARKED = re.compile(r"\{% (blocktranslate|comment|verbatim)\b.*?\{% end\1 %\}", re.S)
_CLASS_BLOCK = re.compile(r"(\{% block (?:body_class|breadth|searchbox_focus) %\})[^{]*")
_TAG = re.compile(r"\{%.*?%\}|\{\{.*?\}\}|\{#.*?#\}", re.S)
_WORD = re.compile(r"[^\W\d_]{2}")
_ATTRIBUTES = ("aria-label", "title", "placeholder", "alt")
#: Elements whose text is code.
_CODE = {"script", "style", "code", "pre", "kbd"}
#: Names, measures and units, which are the same in every language.
_NAMES = {
    "ragsite",
    "nDCG@10",
    "Recall@10",
    "MRR",
    "p50",
    "p95",
    "ms",
    "Esc",
    "GraphML",
    "JSON",
    "docs",
}
#: An example of a filter.
_EXAMPLES = {"year>=2020; lang=de"}


def unmarked_texts(template: str) -> Iterator[tuple[int, str]]:
    """Line and text of whatever a person would read in English on every page."""
    bare = template
    for pattern in (_MARKED, _TAG):
        if pattern is _TAG:
            bare = _CLASS_BLOCK.sub(r"\1", bare)
        # Lines stay where they are.
        bare = pattern.sub(lambda found: "\n" * found.group().count("\n"), bare)
    finder = _Finder()
    finder.feed(bare)
    yield from finder.found


class _Finder(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[int, str]] = []
        self._code: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag in _CODE:
            self._code.append(tag)
        for name, value in attrs:
            if name in _ATTRIBUTES and value:
                self._look(value)

    def handle_endtag(self, tag: str) -> None:
        if tag in self._code:
            self._code.remove(tag)

    def handle_data(self, data: str) -> None:
        if not self._code:
            self._look(data)

    def _look(self, text: str) -> None:
        line = self.getpos()[0] + text[: len(text) - len(text.lstrip())].count("\n")
        text = " ".join(text.split())
        words = [word.strip("·,.;:() ") for word in text.split()]
        if text not in _EXAMPLES and any(
            _WORD.search(word) and word not in _NAMES for word in words
        ):
            self.found.append((line, text))
