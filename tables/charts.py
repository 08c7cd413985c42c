"""Groups of a computed answer as a picture: bars, or a line over time. Begin with `draw_groups`."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from common.charts import PlotArea, Series, axis_labels, draw_line, format_short, make_plot_area
from common.text import truncated

#: Bars of a picture, and points of a line with all times between its ends.
MAX_BARS, MAX_POINTS = 12, 60
#: With fewer times they are bars.
MIN_POINTS = 3
MAX_LABEL_CHARACTERS = 19
#: Labels below a line.
_TIME_LABELS = 5
WIDTH, ROW_HEIGHT = 360, 22
#: Where bars may be, between the names and the values.
_LEFT, _RIGHT = 122, 278


@dataclass(frozen=True, slots=True)
class Bar:
    """A bar with its name and value; `x`, `y` and `width` are those of the bar, `middle` is the
    vertical middle of its row."""

    name: str
    value: str
    x: float
    y: float
    width: float
    middle: float


@dataclass(frozen=True, slots=True)
class GroupChart:
    """A picture of `height`: bars, or a line with its axes. `zero` is where bars begin. `kind` is
    `bars` or `line`."""

    kind: str
    height: int
    bars: Sequence[Bar] = ()
    zero: float = _LEFT
    line: Series | None = None
    levels: Sequence[tuple[float, str]] = ()
    times: Sequence[tuple[float, str, str]] = field(default=())


def draw_groups(groups: Sequence[Mapping[str, Any]], *, period: str | None) -> GroupChart | None:
    """The picture of groups with `name`, `value` and `worded` each; over time where they are those
    of a `period`. None where there is nothing to compare."""
    shown = [group for group in groups if isinstance(group["value"], int | float)]
    if len(shown) < 2:
        return None
    if period and min(group["value"] for group in shown) >= 0:
        values = {str(group["name"]): float(group["value"]) for group in shown}
        names = list(_times(min(values), max(values)))
        if MIN_POINTS <= len(names) <= MAX_POINTS:
            return _line(names, [values.get(name) for name in names])
    return _bars(shown[:MAX_BARS])


def _bars(groups: Sequence[Mapping[str, Any]]) -> GroupChart:
    values = [float(group["value"]) for group in groups]
    low, high = min(0.0, *values), max(0.0, *values)
    scale = (_RIGHT - _LEFT) / ((high - low) or 1.0)
    zero = round(_LEFT - low * scale, 1)
    bars = []
    for place, (group, value) in enumerate(zip(groups, values, strict=True)):
        width = round(max(abs(value) * scale, 1.0), 1)
        top = place * ROW_HEIGHT
        bars.append(
            Bar(
                truncated(" ".join(str(group["name"]).split()), MAX_LABEL_CHARACTERS),
                str(group["worded"]),
                *(zero if value >= 0 else round(zero - width, 1), top + 4, width),
                middle=top + ROW_HEIGHT / 2,
            )
        )
    return GroupChart("bars", len(groups) * ROW_HEIGHT, bars, zero)


def _line(names: Sequence[str], values: Sequence[float | None]) -> GroupChart:
    area: PlotArea = make_plot_area(len(names), [values], integers=False)
    series = draw_line(area, Series("", values))
    every = -(-len(names) // _TIME_LABELS)
    times = [
        (
            area.middle(place),
            name,
            "start" if place == 0 else "end" if place == len(names) - 1 else "middle",
        )
        for place, name in enumerate(names)
        if place % every == 0
    ]
    levels = axis_labels(area, format_short, integers=False)
    return GroupChart("line", 150, line=series, levels=levels, times=times)


def _times(first: str, last: str) -> Iterator[str]:
    """All months, quarters or years from `first` to `last`, written as `2026-03`, `2026-Q1` and
    `2026`; at most one more than are drawn."""
    parts = 4 if "Q" in first else 12 if "-" in first else 1
    year, _, part = first.partition("-")
    number = int(year) * parts + (int(part.lstrip("Q")) - 1 if part else 0)
    for _ in range(MAX_POINTS + 1):
        year_now, at = divmod(number, parts)
        name = f"{year_now:04}"
        if parts > 1:
            name += f"-Q{at + 1}" if parts == 4 else f"-{at + 1:02}"
        yield name
        if name >= last:
            return
        number += 1
