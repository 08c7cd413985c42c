"""Input and output of an extraction, and which messages of a conversation are new. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from memory.extraction.endings import Ending


@dataclass(frozen=True, slots=True)
class UserMessage:
    """A message of the user with its time."""

    text: str
    at: datetime


@dataclass(frozen=True, slots=True)
class Extracted:
    """Facts as (key, value, index), in the order of the messages: a later one supersedes an
    earlier one of its key. Contexts as (question, answer, index): a question as the user may ask
    it again, or a statement without an answer. The index is that of the message. Endings as
    (ending, index, number of `facts` that were stated before it).
    """

    facts: tuple[tuple[str, str, int], ...] = ()
    contexts: tuple[tuple[str, str, int], ...] = ()
    endings: tuple[tuple[Ending, int, int], ...] = ()


#: Number of digests stored for a conversation; earlier messages are not compared.
MAX_DIGESTS = 500


def overlap(known: Sequence[str], sent: Sequence[str]) -> tuple[int, int]:
    """Compare known messages, by digest, with those that a client sends now; returns how many of
    the known ones are still part of the conversation, fewer than all where the user went back and
    changed one, and the index of the first new one.

    Clients send the whole conversation, its last part, or only what is new; a user may have changed
    an earlier message; an older request may arrive late. Where nothing matches, everything is new:
    better read twice than lost.
    """
    whole = len(known)
    if not known:
        return (0, 0)
    if (at := _find_sublist(known, within=sent)) is not None:
        return (whole, at + whole)
    if _find_sublist(sent, within=known) is not None:
        return (whole, len(sent))
    pairs = enumerate(zip(known, sent, strict=False))
    same = next((at for at, (old, new) in pairs if old != new), min(len(known), len(sent)))
    # How many of the last known messages equal the first sent ones.
    sizes = range(min(len(known), len(sent)), 0, -1)
    behind = next((size for size in sizes if known[-size:] == sent[:size]), 0)
    if same > behind:
        return (same, same)
    return (whole, behind)


def _find_sublist(part: Sequence[str], *, within: Sequence[str]) -> int | None:
    """Index at which `part` first occurs as a contiguous sublist."""
    starts = range(len(within) - len(part) + 1)
    return next((at for at in starts if within[at : at + len(part)] == part), None)
