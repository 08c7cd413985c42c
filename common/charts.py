"""Geometry of charts that the server draws as SVG: round axes, bars, lines. Begin with
`make_plot_area`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import ceil, floor, log10
from typing import Literal

from django.utils.formats import number_format

#: Steps that are easy to read.
ROUND_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
#: Smaller values count as zero.
MIN_VALUE = 1e-6
SI_SUFFIXES = ((1e9, "B"), (1e6, "M"), (1e3, "k"))


def axis_values(most: float, *, integers: bool = True, count: int = 3) -> tuple[float, ...]:
    """Axis values from 0 in even, round steps up to the first that is not below `most`; at most
    `count` steps. `integers` allows whole steps only."""
    if most < MIN_VALUE:
        return (0.0, 1.0)
    power = 10.0 ** floor(log10(most / count))
    sizes = [size * power * scale for scale in (1, 10) for size in ROUND_STEPS]
    if integers:
        sizes = [size for size in sizes if size >= 1 and size == int(size)] or [1.0]
    step = next((size for size in sizes if size * count >= most - 1e-9), sizes[-1])
    return tuple(round(step * number, 9) for number in range(ceil(most / step - 1e-9) + 1))


def format_short(value: float) -> str:
    """At most three digits: 950, 1.2k, 34k, 1.5M."""
    for size, letter in SI_SUFFIXES:
        if value >= size * 0.9995:
            scaled = value / size
            return trimmed(scaled, 1 if scaled < 99.95 else 0) + letter
    return trimmed(value, 2 if value < 1 else 1 if value < 10 else 0)


def trimmed(value: float, digits: int) -> str:
    """A number with at most so many decimals."""
    text = f"{value:.{digits}f}"
    return number_format(text.rstrip("0").removesuffix(".") if "." in text else text)


Values = Sequence[float | None]

WIDTH = 360
HEIGHT = 150
LEFT = 38
RIGHT = 10
TOP = 10
BOTTOM = 22
#: Share of its part's width that a bar fills.
BAR_SHARE = 0.72
#: Minimum height of a bar for a value above 0.
MIN_BAR_HEIGHT = 1.5


#: Colour of a series, by its meaning.
Tone = Literal["one", "two", "three", "four", "bad", "soft"]


@dataclass(slots=True)
class Series:
    """One line, or one layer of the bars, and its shapes once it is drawn: `bars` are x, y, width
    and height; `path` goes through the known values, `area` is below it, and `dots` are values
    without neighbours, or all if there are few.
    """

    name: str
    values: Values
    tone: Tone = "one"
    bars: Sequence[tuple[float, float, float, float]] = ()
    path: str = ""
    area: str = ""
    dots: Sequence[tuple[float, float]] = ()


@dataclass(frozen=True, slots=True)
class PlotArea:
    """The plot area: `count` parts side by side, and values from 0 to `top`."""

    count: int
    top: float

    @property
    def step(self) -> float:
        return (WIDTH - LEFT - RIGHT) / self.count

    @property
    def floor(self) -> float:
        return HEIGHT - BOTTOM

    def x(self, place: float) -> float:
        return round(LEFT + place * self.step, 1)

    def middle(self, place: int) -> float:
        return round(LEFT + (place + 0.5) * self.step, 1)

    def y(self, value: float) -> float:
        """The y coordinate of a value, clipped at `top`."""
        share = min(max(value / self.top, 0.0), 1.0)
        return round(self.floor - share * (self.floor - TOP), 1)


def make_plot_area(
    count: int, values: Sequence[Values], *, integers: bool = True, top: float = 0
) -> PlotArea:
    """Large enough for all values; `top` overrides the maximum."""
    most = max((value for each in values for value in each if value is not None), default=0)
    return PlotArea(count, top or axis_values(most, integers=integers)[-1])


def axis_labels(
    plane: PlotArea, format_value: Callable[[float], str], *, integers: bool = True
) -> list[tuple[float, str]]:
    """Places and texts of the labels of the y axis."""
    return [
        (plane.y(value), format_value(value)) for value in axis_values(plane.top, integers=integers)
    ]


def draw_bars(plane: PlotArea, layers: Sequence[Series]) -> None:
    """Stacked bars, the first layer at the bottom; nothing is drawn for 0."""
    heights = [0.0] * plane.count
    width = round(plane.step * BAR_SHARE, 1)
    for layer in layers:
        bars = []
        for place, value in enumerate(layer.values):
            if not value:
                continue
            bottom = plane.y(heights[place])
            heights[place] += value
            height = max(bottom - plane.y(heights[place]), MIN_BAR_HEIGHT)
            x = round(plane.middle(place) - width / 2, 1)
            bars.append((x, round(bottom - height, 1), width, round(height, 1)))
        layer.bars = bars


def draw_line(plane: PlotArea, series: Series, *, bridged: bool = False) -> Series:
    """A line through the middles of the parts. A missing value makes a gap, unless `bridged`."""
    runs: list[list[tuple[float, float]]] = [[]]
    for place, value in enumerate(series.values):
        if value is not None:
            runs[-1].append((plane.middle(place), plane.y(value)))
        elif not bridged:
            runs.append([])
    lines = [run for run in runs if len(run) > 1]
    series.path = " ".join(map(_svg_path, lines))
    series.area = " ".join(
        f"{_svg_path(run)} L{run[-1][0]} {plane.floor} L{run[0][0]} {plane.floor} Z"
        for run in lines
    )
    series.dots = [dot for run in runs if len(run) == 1 or bridged for dot in run]
    return series


def _svg_path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x} {y}" for x, y in points)
