"""What changed between two texts, paragraph by paragraph and word by word. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import zip_longest

#: Unchanged paragraphs shown before and behind what changed.
AROUND = 1
#: More words than these are not compared one by one: that takes the square of them.
MOST_WORDS = 1_000
#: Of words: of texts that have less in common each is read more easily alone.
LEAST_IN_COMMON = 0.3
_WORD = re.compile(r"\s+|\w+|[^\w\s]")
_PARAGRAPHS = re.compile(r"\n(?:[ \t]*\n)+")


@dataclass(frozen=True, slots=True)
class Piece:
    """Some words: `kind` is "same", "gone" or "new"."""

    kind: str
    text: str


@dataclass(frozen=True, slots=True)
class Block:
    """A paragraph with what changed in it; or, without pieces, `left_out` unchanged ones."""

    pieces: tuple[Piece, ...] = ()
    left_out: int = 0


def differences(before: str, after: str) -> list[Block]:
    """What changed, with a paragraph around it; empty where the texts say the same."""
    old, new = _paragraphs(before), _paragraphs(after)
    matcher = SequenceMatcher(
        None, [_known(text) for text in old], [_known(text) for text in new], autojunk=False
    )
    steps = matcher.get_opcodes()
    blocks: list[Block] = []
    for at, (step, first, last, new_first, new_last) in enumerate(steps):
        if step == "equal":
            blocks += _unchanged(old[first:last], is_first=at == 0, is_last=at == len(steps) - 1)
        else:
            blocks += _changed(old[first:last], new[new_first:new_last])
    return blocks if any(step != "equal" for step, *_ in steps) else []


def words_changed(before: str, after: str) -> tuple[Piece, ...]:
    """One paragraph, word by word."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    whole = tuple(piece for piece in (Piece("gone", before), Piece("new", after)) if piece.text)
    if len(old) * len(new) > MOST_WORDS**2:
        return whole
    matcher = SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < LEAST_IN_COMMON:
        return whole
    return tuple(_pieces(old, new, matcher))


def _pieces(
    old: Sequence[str], new: Sequence[str], matcher: "SequenceMatcher[str]"
) -> Iterator[Piece]:
    for step, first, last, new_first, new_last in matcher.get_opcodes():
        gone, come = "".join(old[first:last]), "".join(new[new_first:new_last])
        if step == "equal":
            yield Piece("same", come)
            continue
        if gone:
            yield Piece("gone", gone)
        if come:
            yield Piece("new", come)


def _paragraphs(text: str) -> list[str]:
    return [part for part in _PARAGRAPHS.split(text) if part.strip()]


def _known(paragraph: str) -> str:
    """Line ends and more spaces are no difference."""
    return " ".join(paragraph.split())


def _unchanged(paragraphs: Sequence[str], *, is_first: bool, is_last: bool) -> Iterator[Block]:
    before = 0 if is_first else AROUND
    behind = 0 if is_last else AROUND
    hidden = len(paragraphs) - before - behind
    if hidden <= 1:
        yield from map(_same, paragraphs)
        return
    yield from map(_same, paragraphs[:before])
    yield Block(left_out=hidden)
    yield from map(_same, paragraphs[len(paragraphs) - behind :])


def _same(paragraph: str) -> Block:
    return Block((Piece("same", paragraph),))


def _changed(old: Sequence[str], new: Sequence[str]) -> Iterator[Block]:
    """One after the other those on both sides are taken for the same, changed."""
    for before, after in zip_longest(old, new, fillvalue=""):
        yield Block(words_changed(before, after))
