"""A change of a document's text, and what it makes of the passages that it touches. Pure.

Passages may overlap: a change in what two of them share changes both.
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Protocol

#: Characters around a change by which its place is known where the passage around it is another.
AROUND = 80
#: Shorter surroundings may stand anywhere.
LEAST = 24
_WORD = re.compile(r"\s+|\S+")


class Placed(Protocol):
    """A passage: the document's text from `start` to `end`."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Extent:
    """A passage's place and text."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """Behind the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class Change:
    """The document's characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str

    @property
    def growth(self) -> int:
        """How far everything behind it moves."""
        return len(self.text) - (self.end - self.start)


def joined(passages: Iterable[Placed], *, start: int = 0) -> str:
    """The text from offset `start` on, from consecutive passages in their order. Between two of
    them lies only white space, which comes back as line ends."""
    parts: list[str] = []
    reached = start
    for passage in passages:
        if passage.start > reached:
            parts.append("\n" * (passage.start - reached))
            reached = passage.start
        parts.append(passage.text[reached - passage.start :])
        reached = max(reached, passage.end)
    return "".join(parts)


def change_between(before: str, after: str, *, start: int = 0, is_loose: bool = False) -> Change:
    """The smallest change of whole words that makes `before`, which stands at `start`, `after`.

    `is_loose`: where only the white space differs, that of `before` stays.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    said = [
        [" " if is_loose and word.isspace() else word for word in words] for words in (old, new)
    ]
    head = _in_common(*said)
    tail = _in_common(*(words[head:][::-1] for words in said))
    first = sum(map(len, old[:head]))
    last = len(before) - sum(map(len, old[len(old) - tail :]))
    return Change(start + first, start + last, "".join(new[head : len(new) - tail]))


def _in_common(one: Sequence[str], other: Sequence[str]) -> int:
    """How many words both begin with."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def find_change(text: str, before: str, after: str, *, near: int) -> Change | None:
    """What `text` needs so that it says `after` where it says `before`; None where it does not say
    that. Of several places the one nearest to the offset `near` is meant.

    Line ends count as spaces. Where only something else in the passage differs, a change is known
    by the words around it, if they stand in one place alone. One that is there already is empty.
    """
    if before in after and (found := _nearest(text, after, near)):
        return Change(found[0], found[0], "")
    if found := _nearest(text, before, near):
        return _change_at(text, found, after)
    if found := _nearest(text, after, near):
        return Change(found[0], found[0], "")
    return _by_surroundings(text, before, after)


def _by_surroundings(text: str, before: str, after: str) -> Change | None:
    change = change_between(before, after)
    first = max(0, change.start - AROUND)
    last = min(len(before), change.end + AROUND)
    known = before[first:last]
    if len(known.strip()) < LEAST:
        return None
    places = [match.span() for match in _pattern(known).finditer(text)]
    if len(places) != 1:
        return None
    wanted = after[first : len(after) - (len(before) - last)].strip()
    return _change_at(text, places[0], wanted)


def _change_at(text: str, place: tuple[int, int], after: str) -> Change:
    there = text[slice(*place)]
    is_loose = there.split() != after.split()
    return change_between(there, after, start=place[0], is_loose=is_loose)


def _nearest(text: str, wanted: str, near: int) -> tuple[int, int] | None:
    places = (match.span() for match in _pattern(wanted).finditer(text))
    return min(places, key=lambda place: abs(place[0] - near), default=None)


def _pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, wanted.split())) or r"(?!)")


def owner_of(passages: Sequence[Placed], change: Change) -> int | None:
    """Which passage is to hold all of a change: the first that has all of what it replaces, else
    the first that has its beginning, else the one behind; None where there is none."""
    ranks = [_rank(passage, change) for passage in passages]
    best = min((rank for rank in ranks if rank is not None), default=None)
    return None if best is None else ranks.index(best)


def _rank(passage: Placed, change: Change) -> int | None:
    """0 for a passage that has all of it, 1 for its beginning, 2 for one behind that."""
    if passage.start <= change.start <= passage.end:
        return 0 if change.end <= passage.end else 1
    return 2 if change.start <= passage.start <= change.end else None


def rewritten(
    passages: Sequence[Placed],
    change: Change,
    *,
    owner: int,
    fits: Callable[[int, str], bool] = lambda index, text: True,
) -> list[Extent | None]:
    """The passages after the change; None for one that has nothing of its own left.

    The one at `owner` holds all of what is new. One that shares what is replaced holds the new
    text, too, if that `fits` (index, text); else it ends or begins where the change does.
    """
    return [
        _owning(passage, change) if index == owner else _sharing(passage, change, index, fits)
        for index, passage in enumerate(passages)
    ]


def _owning(passage: Placed, change: Change) -> Extent:
    head = passage.text[: max(0, change.start - passage.start)]
    tail = passage.text[max(0, change.end - passage.start) :]
    return Extent(min(passage.start, change.start), head + change.text + tail)


def _sharing(
    passage: Placed, change: Change, index: int, fits: Callable[[int, str], bool]
) -> Extent | None:
    same = Extent(passage.start, passage.text)
    if passage.end <= change.start:
        return same
    if passage.start >= change.end:
        return replace(same, start=passage.start + change.growth)
    head = passage.text[: max(0, change.start - passage.start)]
    tail = passage.text[max(0, change.end - passage.start) :]
    whole = head + change.text + tail
    has_all = passage.start <= change.start and change.end <= passage.end
    if has_all and whole.strip() and fits(index, whole):
        return Extent(passage.start, whole)
    if len(head.strip()) >= len(tail.strip()):
        return Extent(passage.start, head) if head.strip() else None
    return Extent(change.start + len(change.text), tail)
