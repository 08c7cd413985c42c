"""Entries cut at the end of a word, to as much as fits. Pure."""

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

from common.graphemes import is_edge
from memory.injection.entries import Pair, Turn

Entry = TypeVar("Entry", Pair, Turn)
Cut = Callable[[Entry, int], Entry]

ELLIPSIS = "…"
#: Cut to within a sixteenth of what fits: each try counts the tokens of the whole block.
PRECISION = 16


def shorten(text: str, room: int) -> str:
    """`text` in at most `room` characters, an ellipsis in place of the rest; empty if no word fits.

    Where no word ends in the second half of the room (no spaces, or one long address), the cut is
    between two characters as a reader sees them.
    """
    if len(text) <= room:
        return text
    end = room - len(ELLIPSIS)
    at = end
    while at > room // 2 and not text[at].isspace():
        at -= 1
    if at <= room // 2:
        at = end
        while at > 0 and not is_edge(text, at):
            at -= 1
    head = text[: max(at, 0)].rstrip()
    return head + ELLIPSIS if head else ""


def short_fact(fact: Pair, room: int) -> Pair:
    """A fact whose value has at most `room` characters; its key stays."""
    key, value = fact
    return key, shorten(value, room)


def short_turn(turn: Turn, room: int) -> Turn:
    """A turn of at most `room` characters: half for each side, and what one leaves over. Its day
    stays."""
    question = shorten(turn.question, max(room // 2, room - len(turn.answer)))
    answer = shorten(turn.answer, room - len(question))
    return replace(turn, question=question, answer=answer)


def longest_that_fits(
    entry: Entry, cut: Cut[Entry], fits: Callable[[Entry], bool], *, most: int
) -> Entry | None:
    """As much of the entry as about fits, `most` characters at the utmost; None if no word does.

    Nothing comes back that `fits` did not allow, even where more text is not always more to it.
    """
    fitting, too_much = 0, 1
    while too_much <= most and fits(cut(entry, too_much)):
        fitting, too_much = too_much, too_much * 2
    too_much = min(too_much, most + 1)
    while too_much - fitting > 1 + fitting // PRECISION:
        middle = (fitting + too_much) // 2
        if fits(cut(entry, middle)):
            fitting = middle
        else:
            too_much = middle
    best = cut(entry, fitting)
    return best if best != cut(entry, 0) else None
