"""Gathering mentions of a document: at most one a passage and form. Pure."""

from collections.abc import Iterator
from dataclasses import replace

from graph.extraction.found import Kind, Mention

#: Which of two kinds says more.
STRENGTH: dict[Kind, int] = {"self": 3, "heading": 2, "link": 1, "text": 0}


class Tally:
    """Counts what is mentioned again in the same passage, and keeps the first place."""

    def __init__(self, *, most: int) -> None:
        """`most` forms are kept of a passage: a list of a thousand says nothing of its entries."""
        self._most = most
        self._found: dict[tuple[int, str], Mention] = {}
        self._forms: dict[int, int] = {}

    def add(self, mention: Mention) -> None:
        """Take it in, unless its passage is full."""
        key = mention.passage, mention.form
        before = self._found.get(key)
        if before is not None:
            self._found[key] = together(before, mention)
        elif self._forms.get(mention.passage, 0) < self._most:
            self._forms[mention.passage] = self._forms.get(mention.passage, 0) + 1
            self._found[key] = mention

    def mentions(self) -> Iterator[Mention]:
        """In the order in which they were found."""
        yield from self._found.values()


def together(first: Mention, second: Mention) -> Mention:
    """Both as one. Where the first stood in a heading only, the place is the second's."""
    place = first if first.end or not second.end else second
    kind = max(first.kind, second.kind, key=STRENGTH.__getitem__)
    count = first.count + second.count
    return replace(first, kind=kind, count=count, start=place.start, end=place.end)
