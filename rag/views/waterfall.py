"""The steps of a run as bars over its time, each call under the node that made it."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.utils import timezone

from rag.models import Span, Trace

#: Of the picture that a bar is drawn into.
SCALE = 1000
#: So much of it at least, or a quick step would not be seen.
LEAST = 6


@dataclass(frozen=True, slots=True)
class Bar:
    """A step: `x` and `width` are parts of SCALE, `depth` counts the steps that it is within."""

    span: Span
    depth: int
    x: float
    width: float
    milliseconds: float
    after_milliseconds: float

    @property
    def tone(self) -> str:
        """What colours it: how it ended, or else what it is."""
        return self.span.kind if self.span.state == Span.State.DONE else self.span.state


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The bars in the order of the steps, and how long the run took."""

    bars: tuple[Bar, ...]
    milliseconds: float


def waterfall(trace: Trace, spans: Sequence[Span]) -> Waterfall:
    """Of a run that may not have ended."""
    begin = min([trace.started_at, *(span.started_at for span in spans)])
    ends = [trace.ended_at or timezone.now(), *(span.ended_at for span in spans)]
    whole = max(_milliseconds(begin, max(ends)), 1.0)
    depths: dict[int, int] = {}
    bars = []
    for span in _nested(spans):
        depths[span.pk] = depths.get(span.parent_id or 0, -1) + 1
        after = _milliseconds(begin, span.started_at)
        width = max(span.milliseconds / whole * SCALE, LEAST)
        bars.append(
            Bar(
                span=span,
                depth=min(depths[span.pk], 3),
                x=min(after / whole * SCALE, SCALE - width),
                width=width,
                milliseconds=span.milliseconds,
                after_milliseconds=after,
            )
        )
    return Waterfall(tuple(bars), whole)


def _nested(spans: Sequence[Span]) -> list[Span]:
    """Every step behind the one that it is within."""
    children: dict[int | None, list[Span]] = {}
    known = {span.pk for span in spans}
    for span in spans:
        parent = span.parent_id if span.parent_id in known else None
        children.setdefault(parent, []).append(span)
    ordered: list[Span] = []
    waiting = children.get(None, [])[::-1]
    while waiting:
        span = waiting.pop()
        ordered.append(span)
        waiting += children.get(span.pk, [])[::-1]
    return ordered


def _milliseconds(begin: datetime, end: datetime) -> float:
    return (end - begin).total_seconds() * 1000
