"""Where the bars and lines of a small chart go. Pure: numbers in, coordinates out."""

from collections.abc import Sequence
from dataclasses import dataclass

from dashboard.charts.scale import ticks

Values = Sequence[float | None]

WIDTH = 360
HEIGHT = 150
LEFT = 38
RIGHT = 10
TOP = 10
BOTTOM = 22
#: A bar keeps so much of its part.
BAR = 0.72
#: A bar that is not nothing can be seen.
LEAST = 1.5


@dataclass(frozen=True, slots=True)
class Tick:
    """A mark of an axis: where, and what it says."""

    at: float
    value: float


@dataclass(frozen=True, slots=True)
class Box:
    """A bar, or a piece of one."""

    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Line:
    """A path through the values that there are, the area below it, and dots for those that stand
    alone or are few."""

    path: str
    area: str
    dots: tuple[tuple[float, float], ...]


@dataclass(frozen=True, slots=True)
class Plane:
    """The area that is drawn in: `count` parts side by side, and values from 0 to `top`."""

    count: int
    top: float

    @property
    def step(self) -> float:
        """Width of a part."""
        return (WIDTH - LEFT - RIGHT) / self.count

    @property
    def floor(self) -> float:
        """Where 0 is."""
        return HEIGHT - BOTTOM

    def x(self, place: float) -> float:
        """Where a part begins."""
        return round(LEFT + place * self.step, 1)

    def middle(self, place: int) -> float:
        """The middle of a part."""
        return round(LEFT + (place + 0.5) * self.step, 1)

    def y(self, value: float) -> float:
        """The height of a value; larger ones than `top` end there."""
        share = min(max(value / self.top, 0.0), 1.0)
        return round(self.floor - share * (self.floor - TOP), 1)


def plane(count: int, values: Sequence[Values], *, whole: bool = True, top: float = 0) -> Plane:
    """High enough for all values; `top` says how high instead."""
    most = max((value for each in values for value in each if value is not None), default=0)
    return Plane(count, top or ticks(most, whole=whole)[-1])


def levels(plane: Plane, *, whole: bool = True) -> list[Tick]:
    """The marks of the upright axis."""
    return [Tick(plane.y(value), value) for value in ticks(plane.top, whole=whole)]


def stacked(plane: Plane, layers: Sequence[Values]) -> list[list[Box]]:
    """Bars, the first layer at the bottom; nothing is drawn for 0."""
    heights = [0.0] * plane.count
    width = round(plane.step * BAR, 1)
    drawn = []
    for layer in layers:
        boxes = []
        for place, value in enumerate(layer):
            if not value:
                continue
            bottom = plane.y(heights[place])
            heights[place] += value
            height = max(bottom - plane.y(heights[place]), LEAST)
            x = round(plane.middle(place) - width / 2, 1)
            boxes.append(Box(x, round(bottom - height, 1), width, round(height, 1)))
        drawn.append(boxes)
    return drawn


def line(plane: Plane, values: Values, *, bridged: bool = False) -> Line:
    """Through the middles of the parts. Where a value is missing the line has a gap, or goes on to
    the next one if `bridged`."""
    runs = _runs(values, bridged=bridged)
    points = [
        [(plane.middle(place), plane.y(value)) for place, value in run] for run in runs if run
    ]
    path = " ".join(_path(run) for run in points if len(run) > 1)
    area = " ".join(
        f"{_path(run)} L{run[-1][0]} {plane.floor} L{run[0][0]} {plane.floor} Z"
        for run in points
        if len(run) > 1
    )
    dots = [dot for run in points if len(run) == 1 or bridged for dot in run]
    return Line(path, area, tuple(dots))


def _runs(values: Values, *, bridged: bool) -> list[list[tuple[int, float]]]:
    runs: list[list[tuple[int, float]]] = [[]]
    for place, value in enumerate(values):
        if value is not None:
            runs[-1].append((place, value))
        elif not bridged and runs[-1]:
            runs.append([])
    return runs


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + " L".join(f"{x} {y}" for x, y in points)
