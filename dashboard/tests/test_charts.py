"""Geometry of the charts: round numbers at the axis, everything inside the picture."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common import charts
from common.charts import MIN_VALUE, axis_values, format_short
from dashboard.charts import format_milliseconds
from dashboard.figures import RANGE_KINDS, Range, range_of

AMOUNTS = st.floats(min_value=0, max_value=1e9, allow_subnormal=False)
GAPPY = st.lists(st.none() | AMOUNTS, min_size=1, max_size=40)
ZONES = ["UTC", "Europe/Berlin", "Asia/Kolkata", "America/New_York"]


@given(AMOUNTS, st.booleans())
def test_an_axis_ends_above_everything_and_in_even_steps(most: float, whole: bool) -> None:
    marks = axis_values(most, integers=whole)
    assert marks[0] == 0
    assert marks[-1] >= most * (1 - 1e-6) - MIN_VALUE
    assert 2 <= len(marks) <= 5
    steps = {round((high - low) / marks[-1], 6) for low, high in pairwise(marks)}
    assert max(steps) - min(steps) < 1e-5
    assert not whole or all(mark == int(mark) for mark in marks)


@given(GAPPY)
def test_a_line_stays_inside_and_passes_through_every_value(values: list[float | None]) -> None:
    plane = charts.make_plot_area(len(values), [values], integers=False)
    line = charts.draw_line(plane, charts.Series("", values))
    numbers = [
        tuple(map(float, point.strip("ML").split(" ")))
        for point in line.path.replace(" L", "|L").replace(" M", "|M").split("|")
        if point
    ]
    points = [*numbers, *line.dots]
    assert len(points) == sum(value is not None for value in values)
    for x, y in points:
        assert charts.LEFT <= x <= charts.WIDTH - charts.RIGHT
        assert charts.TOP <= y <= plane.floor


@given(st.lists(st.tuples(st.integers(0, 1000), st.integers(0, 1000)), min_size=1, max_size=40))
def test_layers_of_a_bar_stand_on_each_other(parts: list[tuple[int, int]]) -> None:
    layers = list(zip(*parts, strict=True))
    plane = charts.make_plot_area(len(parts), [[low + high for low, high in parts]])
    series = [charts.Series("", layer) for layer in layers]
    charts.draw_bars(plane, series)
    below, above = (each.bars for each in series)
    assert len(below) == sum(bool(low) for low, _ in parts)
    assert len(above) == sum(bool(high) for _, high in parts)
    for x, _, width, height in [*below, *above]:
        assert height >= charts.MIN_BAR_HEIGHT
        assert charts.LEFT <= x <= charts.WIDTH - charts.RIGHT - width + 0.2
    tops = {x: y for x, y, _, _ in below}
    for x, y, _, height in above:
        if x in tops:
            assert y + height == pytest.approx(tops[x], abs=charts.MIN_BAR_HEIGHT + 0.2)


@pytest.mark.parametrize(
    ("value", "said"),
    [(0, "0"), (7, "7"), (0.04, "0.04"), (1234, "1.2k"), (99_960, "100k"), (2_500_000, "2.5M")],
)
def test_numbers_are_short(value: float, said: str) -> None:
    assert format_short(value) == said


def test_times_have_the_unit_that_fits() -> None:
    assert [format_milliseconds(each) for each in (8.46, 120.2, 1400)] == [
        "8.5 ms",
        "120 ms",
        "1.4 s",
    ]


@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("name", sorted(RANGE_KINDS))
def test_a_range_is_whole_and_ends_after_now(name: str, zone: str) -> None:
    now = datetime(2026, 11, 22, 20, 17, 33, tzinfo=UTC).astimezone(ZoneInfo(zone))
    range = range_of(name, now=now)
    assert len(range.starts) == RANGE_KINDS[name][1]
    assert range.starts[-1] <= now < range.end
    ends = (*range.starts[1:], range.end)
    assert {end - begin for begin, end in zip(range.starts, ends, strict=True)} == {range.step}
    assert all(start.minute == 0 for start in range.starts)
    if range.step == timedelta(days=1):
        assert all(start.hour == 0 for start in range.starts)


def test_a_moment_has_one_place() -> None:
    range: Range = range_of("24h", now=datetime(2026, 11, 22, 20, 17, tzinfo=UTC))
    assert range.place(range.now) == 23
    assert range.place(range.start) == 0
    assert range.place(range.end) is None
    assert range.place(range.start - timedelta(microseconds=1)) is None
