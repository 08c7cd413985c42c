"""Running heads and page numbers of a PDF: they would tear sentences over a page break."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence

#: How many lines at the top and at the bottom of a page may be running ones.
_EDGE = 2
_MIN_PAGES = 3
_NUMBER = re.compile(r"^\d{1,6}\b|\b\d{1,6}$")


def without_running_lines(pages: Sequence[str]) -> list[str]:
    """Pages without the outer lines that stand on two pages in five, and on three at least.

    Lines are the same if they differ only in a number that grows with the pages. All other
    numbers count: the total at the foot of each sheet is no running line.
    """
    split = [page.split("\n") for page in pages]
    seen = Counter(
        key for number, lines in enumerate(split) for key in set(_edge_keys(lines, number))
    )
    running = {key for key, count in seen.items() if count >= max(_MIN_PAGES, 0.4 * len(pages))}
    if not running:
        return list(pages)
    return [_without(lines, number, running) for number, lines in enumerate(split)]


def _edge_keys(lines: Sequence[str], page: int) -> Iterator[str]:
    for at in _edges(lines):
        yield _key(lines[at], page)


def _edges(lines: Sequence[str]) -> set[int]:
    """Indices of the outermost lines that are not blank; none where these are all there is."""
    filled = [at for at, line in enumerate(lines) if line]
    return {*filled[:_EDGE], *filled[-_EDGE:]} if len(filled) > 2 * _EDGE else set()


def _key(line: str, page: int) -> str:
    """The line, with the number at its start or end told relative to the page."""
    return _NUMBER.sub(lambda number: f"page{int(number[0]) - page:+}", line, count=1)


def _without(lines: Sequence[str], page: int, running: set[str]) -> str:
    gone = {at for at in _edges(lines) if _key(lines[at], page) in running}
    return "\n".join(line for at, line in enumerate(lines) if at not in gone).strip("\n")
