"""A pause for all, while the model cannot be reached: one document tries, the others wait."""

from django.conf import settings

from common import outages

_OUTAGES = outages.Outages("graph.extraction")


def is_paused() -> bool:
    """Whether the model was away a moment ago."""
    return _OUTAGES.is_paused()


def note_outage() -> None:
    """Let nobody ask for a while, longer each time."""
    _OUTAGES.note_outage(first=settings.GRAPH_EXTRACTION_RETRY_SECONDS)


def note_answer() -> None:
    """The model is there."""
    _OUTAGES.note_answer()


def delay(failures: int, *, longest: float) -> float:
    """Seconds before another try after so many failures: twice as many each time."""
    return outages.delay(failures, first=settings.GRAPH_EXTRACTION_RETRY_SECONDS, longest=longest)
