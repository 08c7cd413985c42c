"""One small chart with all that is said about it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal

from django.contrib.humanize.templatetags.humanize import intcomma
from django.utils.formats import date_format

from dashboard.charts import drawing
from dashboard.charts.drawing import Box, Line, Plane, Values
from dashboard.charts.scale import short
from dashboard.ranges import DAY, Range

Kind = Literal["bars", "lines", "marks"]
#: How a series is coloured: by what it means.
Tone = Literal["one", "two", "three", "four", "bad", "soft"]


@dataclass(frozen=True, slots=True)
class Series:
    """One line, or one layer of the bars."""

    name: str
    values: Values
    tone: Tone = "one"


@dataclass(frozen=True, slots=True)
class Drawn:
    """A series with its shapes."""

    series: Series
    boxes: Sequence[Box] = ()
    line: Line | None = None


@dataclass(frozen=True, slots=True)
class Label:
    """A word at an axis."""

    at: float
    text: str


@dataclass(frozen=True, slots=True)
class Row:
    """A line of the table behind the picture."""

    part: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A picture, the number that matters, and the table behind it.

    `headline` is that number and `about` what it counts. Without anything to draw `empty` says
    what will be here.
    """

    id: str
    title: str
    headline: str
    about: str
    empty: str
    plane: Plane
    drawn: tuple[Drawn, ...]
    levels: tuple[Label, ...]
    times: tuple[Label, ...]
    rows: tuple[Row, ...]
    kind: Kind
    link: str = ""
    link_text: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to draw."""
        return not any(value for each in self.drawn for value in each.series.values)

    @property
    def has_area(self) -> bool:
        """Whether what is below the line counts."""
        return self.kind == "lines" and len(self.drawn) == 1

    @property
    def has_key(self) -> bool:
        """Whether the colours must be explained."""
        return len(self.drawn) > 1

    @property
    def description(self) -> str:
        """The picture in words."""
        return f"{self.title}: {self.headline} {self.about}."


def chart(
    id: str,
    title: str,
    *,
    range: Range,
    series: Sequence[Series],
    headline: str,
    about: str,
    empty: str,
    kind: Kind = "bars",
    said: Callable[[float], str] = lambda value: intcomma(int(value)),
    axis: Callable[[float], str] = short,
    whole: bool = True,
    top: float = 0,
    link: str = "",
    link_text: str = "",
) -> Chart:
    """`marks` are lines through single measurements, `said` writes a value and `axis` one at the
    axis; `top` is where the axis ends, by default where it must."""
    values = [each.values for each in series]
    count = len(range.starts)
    if kind == "bars":
        sums = [sum(value or 0 for value in part) for part in zip(*values, strict=True)]
        plane = drawing.plane(count, [sums], whole=whole, top=top)
        boxes = drawing.stacked(plane, values)
        drawn = [Drawn(each, boxes=shapes) for each, shapes in zip(series, boxes, strict=True)]
    else:
        plane = drawing.plane(count, values, whole=whole, top=top)
        bridged = kind == "marks"
        drawn = [
            Drawn(each, line=drawing.line(plane, each.values, bridged=bridged)) for each in series
        ]
    return Chart(
        id=id,
        title=title,
        headline=headline,
        about=about,
        empty=empty,
        plane=plane,
        drawn=tuple(drawn),
        levels=tuple(
            Label(tick.at, axis(tick.value)) for tick in drawing.levels(plane, whole=whole)
        ),
        times=tuple(_times(plane, range)),
        rows=tuple(_rows(range, values, said)),
        kind=kind,
        link=link,
        link_text=link_text,
    )


def _times(plane: Plane, range: Range) -> list[Label]:
    """A few hours, days or dates; those that would stand over the edge are left out."""
    every, form = {
        "24h": (timedelta(hours=6), "H:i"),
        "7d": (DAY, "D"),
        "30d": (7 * DAY, "j M"),
    }[range.kind.name]
    begun = [start for start in range.starts if _is_mark(start, range, every)]
    labels = [Label(plane.x(range.starts.index(at)), date_format(at, form)) for at in begun]
    return [label for label in labels if drawing.LEFT <= label.at < drawing.WIDTH - 3 * _HALF]


_HALF = 9


def _is_mark(start: datetime, range: Range, every: timedelta) -> bool:
    if every >= 7 * DAY:
        return (range.starts[-1] - start) % every == timedelta(0)
    midnight = start.replace(hour=0, minute=0)
    return (start - midnight) % every == timedelta(0)


def _rows(range: Range, values: Sequence[Values], said: Callable[[float], str]) -> list[Row]:
    return [
        Row(part_name(start, range), tuple("–" if value is None else said(value) for value in part))
        for start, *part in zip(range.starts, *values, strict=True)
    ]


def part_name(start: datetime, range: Range) -> str:
    """What a part is called: its day, or its day and hours."""
    if range.kind.step >= DAY:
        return date_format(start, "D j M")
    end = start + range.kind.step
    return f"{date_format(start, 'D j M, H')}–{date_format(end, 'H')} h"
