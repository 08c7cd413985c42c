"""How much of a conversation is known already, when a client sends it again. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

#: Digests that are kept of a conversation. What was said before is not looked for.
MOST = 500


@dataclass(frozen=True, slots=True)
class Overlap:
    """`start` is the first message that is new. Of those known `kept` are still part of the
    conversation: fewer than there are where the user went back and changed one."""

    kept: int
    start: int

    def is_edit(self, known: Sequence[str]) -> bool:
        """Whether some of what was known was taken back."""
        return self.kept < len(known)


def overlap(known: Sequence[str], sent: Sequence[str]) -> Overlap:
    """Compare the messages known, by their digests, with those that a client sends now.

    Clients send the whole conversation, the last part of it, or only what is new; a user may have
    changed an earlier message and gone on from there; an older request may come late. Where
    nothing agrees, all of it is new and nothing taken back: rather read twice than lost.
    """
    whole = len(known)
    if not known:
        return Overlap(0, 0)
    if (at := _place(known, within=sent)) is not None:
        return Overlap(whole, at + whole)
    if _place(sent, within=known) is not None:
        return Overlap(whole, len(sent))
    same = _common_start(known, sent)
    behind = _joint(known, sent)
    if same > behind:
        return Overlap(same, same)
    return Overlap(whole, behind)


def _place(part: Sequence[str], *, within: Sequence[str]) -> int | None:
    """Where `part` first stands in the other as a whole."""
    starts = range(len(within) - len(part) + 1)
    return next((at for at in starts if within[at : at + len(part)] == part), None)


def _common_start(known: Sequence[str], sent: Sequence[str]) -> int:
    pairs = zip(known, sent, strict=False)
    return next(
        (at for at, (old, new) in enumerate(pairs) if old != new), min(map(len, (known, sent)))
    )


def _joint(known: Sequence[str], sent: Sequence[str]) -> int:
    """How many messages at the end of those known are the first that are sent."""
    sizes = range(min(len(known), len(sent)), 0, -1)
    return next((size for size in sizes if known[-size:] == sent[:size]), 0)
