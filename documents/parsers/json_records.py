"""JSON values as lines that a person reads, `path: value`, record by record."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice

from documents.parsers.json_leaves import Leaf, Path

#: Short values of a list share lines of about this length, each of which begins with the path.
LINE_CHARACTERS = 400
_SHORT = 80
_MAX_TITLE = 300
#: A longer record is written in pieces, so that a file that is one record fills no memory twice.
_MAX_LEAVES = 10_000
_TITLES = ("title", "headline", "subject", "name")
_TEXTS = ("text", "content", "body", "page_content", "passage", "abstract")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Record:
    """One record, or a piece of a long one: its title, if it has one, and all of it as text."""

    number: int
    title: str
    text: str


def records(leaves: Iterable[Leaf]) -> Iterator[Record]:
    """In order. A record's title comes first, then its text, then its other values."""
    for _, group in groupby(leaves, key=_belongs_to):
        while piece := list(islice(group, _MAX_LEAVES)):
            yield _record(piece[0].record, piece)


def _belongs_to(leaf: Leaf) -> int | None:
    """Bare figures are no records: those of a list stay together."""
    return leaf.record if leaf.path or leaf.is_string else None


def _record(number: int, leaves: list[Leaf]) -> Record:
    text = _taken(leaves, _TEXTS)
    title = _taken(leaves, _TITLES, longest=_MAX_TITLE) if text else None
    named = title.text.strip() if title else _title(leaves)
    rest = "\n".join(_lines(leaf for leaf in leaves if leaf is not text and leaf is not title))
    parts = [title.text if title else "", text.text if text else "", rest]
    return Record(number, named, "\n\n".join(part.strip("\n") for part in parts if part.strip()))


def _title(leaves: Sequence[Leaf]) -> str:
    title = _taken(leaves, _TITLES, longest=_MAX_TITLE)
    return title.text.strip() if title else ""


def _taken(leaves: Sequence[Leaf], names: Sequence[str], *, longest: int = 0) -> Leaf | None:
    """The record's own string that has one of the names; of several the first name's."""
    found: dict[str, Leaf] = {}
    for leaf in leaves:
        if len(leaf.path) == 1 and leaf.is_string and leaf.text.strip():
            fits = not longest or (len(leaf.text) <= longest and "\n" not in leaf.text)
            if fits:
                found.setdefault(str(leaf.path[0]).lower(), leaf)
    return next((found[name] for name in names if name in found), None)


def _lines(leaves: Iterable[Leaf]) -> Iterator[str]:
    """`a.b[0]: value`; short values of a list side by side, `a.b: 1, 2, 3`."""
    for owner, group in groupby(leaves, key=_list_of_short):
        if owner is None:
            yield from (_line(_written(leaf.path), leaf.text) for leaf in group)
        else:
            yield from _side_by_side(_written(owner), [leaf.text for leaf in group])


def _list_of_short(leaf: Leaf) -> Path | None:
    """The list that the leaf is a short element of."""
    is_element = isinstance(leaf.path[-1], int) if leaf.path else not leaf.is_string
    is_short = len(leaf.text) <= _SHORT and "\n" not in leaf.text
    return leaf.path[:-1] if is_element and is_short else None


def _side_by_side(path: str, values: Sequence[str]) -> Iterator[str]:
    line: list[str] = []
    length = 0
    for value in values:
        if line and length + len(value) > LINE_CHARACTERS:
            yield _line(path, ", ".join(line))
            line, length = [], 0
        line.append(value)
        length += len(value) + 2
    yield _line(path, ", ".join(line))


def _line(path: str, value: str) -> str:
    gap = "\n" if "\n" in value else " "
    return f"{path}:{gap}{value}" if path else value


def _written(path: Path) -> str:
    parts = [f"[{part}]" if isinstance(part, int) else f".{_one_line(part)}" for part in path]
    return "".join(parts).removeprefix(".")


def _one_line(name: str) -> str:
    return _SPACE.sub(" ", name)
