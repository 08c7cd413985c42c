"""A pause for all, while the model cannot be reached: one conversation tries, the others wait."""

from django.conf import settings
from django.core.cache import cache

LONGEST_PAUSE = 300.0
_PAUSE = "memory.extraction.pause"
_IN_A_ROW = "memory.extraction.outages"
#: Outages further apart are not one.
_FORGOTTEN_AFTER = 3600


def is_paused() -> bool:
    """Whether the model was away a moment ago."""
    return cache.get(_PAUSE) is not None


def note_outage() -> None:
    """Let nobody ask for a while, longer each time."""
    in_a_row = cache.get(_IN_A_ROW, 0) + 1
    cache.set(_IN_A_ROW, in_a_row, _FORGOTTEN_AFTER)
    seconds = delay(in_a_row, longest=LONGEST_PAUSE)
    cache.set(_PAUSE, in_a_row, max(1, round(seconds)))


def note_answer() -> None:
    """The model is there."""
    cache.delete_many([_PAUSE, _IN_A_ROW])


def delay(failures: int, *, longest: float) -> float:
    """Seconds before another try after so many failures: twice as many each time."""
    first: float = settings.MEMORY_EXTRACTION_RETRY_SECONDS
    return min(longest, first * 2.0 ** min(failures - 1, 30))
