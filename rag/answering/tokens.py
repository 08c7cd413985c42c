"""How much of a text fits into a budget of tokens. Pure."""

import re
from collections.abc import Callable

from common.graphemes import may_join
from memory.injection.budget import estimated_tokens

__all__ = ["estimated_tokens", "shortened"]

#: Where a cut text may end, best first: behind a paragraph, a sentence, a word.
_ENDS = (
    re.compile(r"\n\s*\n"),
    re.compile(r"[.!?…][\"'”’)\]»]*\s+|[。！？｡]+[」』”’）】]*|\n"),
    re.compile(r"\s+"),
)
#: A cut at a sentence may leave out so much of what would fit.
_LEAST_KEPT = 0.5


def shortened(text: str, most: int, count: Callable[[str], int]) -> str:
    """The beginning of `text` with at most `most` tokens: it ends behind a sentence where one ends
    in its second half, else behind a word. Empty where nothing fits."""
    if count(text) <= most:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if count(text[:middle]) <= most else (low, middle - 1)
    while 0 < low < len(text) and may_join(text[low - 1], text[low]):
        low -= 1
    for number, ends in enumerate(_ENDS):
        places = [match.end() for match in ends.finditer(text) if match.end() <= low]
        if places and (places[-1] >= low * _LEAST_KEPT or number == len(_ENDS) - 1):
            return text[: places[-1]].rstrip()
    return text[:low].rstrip()
