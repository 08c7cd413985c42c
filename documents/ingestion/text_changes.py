"""A change of a document's text, and its effect on the passages that it touches: passages may
overlap, and a change in what two share changes both. Pure Python. Begin with `find_change`."""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol

#: Characters around an edit that locate it when the passage around it has changed.
CONTEXT_CHARACTERS = 80
#: Shorter contexts may occur anywhere.
MIN_CONTEXT_CHARACTERS = 24
_WORD = re.compile(r"\s+|\S+")


class Positioned(Protocol):
    """A passage: the document's text from `start` to `end`."""

    @property
    def start(self) -> int: ...

    @property
    def end(self) -> int: ...

    @property
    def text(self) -> str: ...


@dataclass(frozen=True, slots=True)
class PassageExtent:
    """A passage's position and text."""

    start: int
    text: str

    @property
    def end(self) -> int:
        """Offset after the last character."""
        return self.start + len(self.text)


@dataclass(frozen=True, slots=True)
class TextChange:
    """The document's characters from `start` to `end` become `text`."""

    start: int
    end: int
    text: str

    @property
    def growth(self) -> int:
        """By how many characters the following text moves."""
        return len(self.text) - (self.end - self.start)


def join_passages(passages: Iterable[Positioned], *, start: int = 0) -> str:
    """The text from offset `start`, joined from consecutive passages. Only white space lies between
    two passages; it becomes line ends."""
    parts: list[str] = []
    reached = start
    for passage in passages:
        if passage.start > reached:
            parts.append("\n" * (passage.start - reached))
            reached = passage.start
        parts.append(passage.text[reached - passage.start :])
        reached = max(reached, passage.end)
    return "".join(parts)


def change_between(
    before: str, after: str, *, start: int = 0, is_loose: bool = False
) -> TextChange:
    """The smallest change of whole words from `before`, which begins at `start`, to `after`.

    `is_loose`: where only white space differs, that of `before` stays.
    """
    old, new = _WORD.findall(before), _WORD.findall(after)
    words_of_both = [
        [" " if is_loose and word.isspace() else word for word in words] for words in (old, new)
    ]
    head = _common_prefix_length(*words_of_both)
    tail = _common_prefix_length(*(words[head:][::-1] for words in words_of_both))
    first = sum(map(len, old[:head]))
    last = len(before) - sum(map(len, old[len(old) - tail :]))
    return TextChange(start + first, start + last, "".join(new[head : len(new) - tail]))


def _common_prefix_length(one: Sequence[str], other: Sequence[str]) -> int:
    """The length of the common prefix, in words."""
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def find_change(text: str, before: str, after: str, *, near: int) -> TextChange | None:
    """The change that makes `text` say `after` where it says `before`; None if it does not say
    `before`. Of several places the one nearest to offset `near` is taken.

    Line ends count as spaces. If the passage differs elsewhere, the change is located by the words
    around it, provided they occur once. If `after` is already there the change is empty.
    """
    if before in after and (found := _nearest_match(text, after, near)):
        return TextChange(found[0], found[0], "")
    if found := _nearest_match(text, before, near):
        return _change_at(text, found, after)
    if found := _nearest_match(text, after, near):
        return TextChange(found[0], found[0], "")
    change = change_between(before, after)
    first = max(0, change.start - CONTEXT_CHARACTERS)
    last = min(len(before), change.end + CONTEXT_CHARACTERS)
    known = before[first:last]
    if len(known.strip()) < MIN_CONTEXT_CHARACTERS:
        return None
    places = [match.span() for match in _whitespace_pattern(known).finditer(text)]
    if len(places) != 1:
        return None
    wanted = after[first : len(after) - (len(before) - last)].strip()
    return _change_at(text, places[0], wanted)


def _change_at(text: str, place: tuple[int, int], after: str) -> TextChange:
    there = text[slice(*place)]
    is_loose = there.split() != after.split()
    return change_between(there, after, start=place[0], is_loose=is_loose)


def _nearest_match(text: str, wanted: str, near: int) -> tuple[int, int] | None:
    places = (match.span() for match in _whitespace_pattern(wanted).finditer(text))
    return min(places, key=lambda place: abs(place[0] - near), default=None)


def _whitespace_pattern(wanted: str) -> re.Pattern[str]:
    return re.compile(r"\s+".join(map(re.escape, wanted.split())) or r"(?!)")


def owner_index(passages: Sequence[Positioned], change: TextChange) -> int | None:
    """Index of the passage that will contain the change: the first that contains all of what is
    replaced, else its beginning, else the next one; None if there is none."""
    beginning = following = None
    for index, passage in enumerate(passages):
        if passage.start <= change.start <= passage.end:
            if change.end <= passage.end:
                return index
            beginning = index if beginning is None else beginning
        elif change.start <= passage.start <= change.end and following is None:
            following = index
    return following if beginning is None else beginning


def apply_change(
    passages: Sequence[Positioned],
    change: TextChange,
    *,
    owner: int,
    fits: Callable[[int, str], bool] = lambda index, text: True,
) -> list[PassageExtent | None]:
    """The passages after the change; None for one that has nothing of its own left.

    The one at `owner` contains all of the new text. One that overlaps the replaced text contains it
    too if that `fits` (index, text); else it ends or begins where the change does.
    """
    extents: list[PassageExtent | None] = []
    for index, passage in enumerate(passages):
        head = passage.text[: max(0, change.start - passage.start)]
        tail = passage.text[max(0, change.end - passage.start) :]
        whole = head + change.text + tail
        has_all = passage.start <= change.start and change.end <= passage.end
        if index == owner:
            extents.append(PassageExtent(min(passage.start, change.start), whole))
        elif passage.end <= change.start:
            extents.append(PassageExtent(passage.start, passage.text))
        elif passage.start >= change.end:
            extents.append(PassageExtent(passage.start + change.growth, passage.text))
        elif has_all and whole.strip() and fits(index, whole):
            extents.append(PassageExtent(passage.start, whole))
        elif len(head.strip()) >= len(tail.strip()):
            extents.append(PassageExtent(passage.start, head) if head.strip() else None)
        else:
            extents.append(PassageExtent(change.start + len(change.text), tail))
    return extents
