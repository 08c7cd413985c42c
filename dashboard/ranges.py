"""Stretches of time, cut into equal parts that begin at full hours or days. Pure."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Kind:
    """A choice of the page: `count` parts of `step` each, up to now."""

    name: str
    label: str
    step: timedelta
    count: int

    @property
    def part(self) -> str:
        """What one part is called."""
        hours = int(self.step / timedelta(hours=1))
        return "day" if hours == 24 else "hour" if hours == 1 else f"{hours} hours"


KINDS = {
    kind.name: kind
    for kind in (
        Kind("24h", "24 hours", timedelta(hours=1), 24),
        Kind("7d", "7 days", timedelta(hours=6), 28),
        Kind("30d", "30 days", DAY, 30),
    )
}
DEFAULT = "7d"
CHOICES = [(kind.name, kind.label) for kind in KINDS.values()]


@dataclass(frozen=True, slots=True)
class Range:
    """`starts` are when the parts begin, the first one first; the last one ends at `end`, after
    `now`."""

    kind: Kind
    starts: tuple[datetime, ...]
    end: datetime
    now: datetime

    @property
    def start(self) -> datetime:
        """When it begins."""
        return self.starts[0]

    def place(self, moment: datetime) -> int | None:
        """Which part a moment is in; None outside."""
        if not self.start <= moment < self.end:
            return None
        return bisect_right(self.starts, moment) - 1

    def spans(self) -> Sequence[tuple[datetime, datetime]]:
        """Begin and end of each part."""
        return list(zip(self.starts, (*self.starts[1:], self.end), strict=True))


def range_of(name: str, *, now: datetime) -> Range:
    """The range of that name up to `now`, whose time zone says when a day begins. Unknown names
    mean the default."""
    kind = KINDS.get(name, KINDS[DEFAULT])
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    end = midnight + ((now - midnight) // kind.step + 1) * kind.step
    starts = tuple(end - kind.step * back for back in range(kind.count, 0, -1))
    return Range(kind, starts, end, now)
