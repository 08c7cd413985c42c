"""Equal shares of what there is room for. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Share:
    """What each may keep. `spare` of those who hold more may keep one more: a share is whole."""

    level: int
    spare: int = 0


def equal_share(held: Sequence[int], room: int) -> Share | None:
    """The highest level to cut those down to who hold more, so that all of it fits into `room`.

    As water finds its level: whoever holds no more than an equal share keeps everything, and what
    they leave of theirs is shared by the others. None where everything fits.
    """
    left = room
    ascending = sorted(held)
    for place, amount in enumerate(ascending):
        others = len(ascending) - place
        if amount * others > left:
            level, spare = divmod(max(left, 0), others)
            return Share(level, spare)
        left -= amount
    return None
