"""Grouping rows by the parts of a range, in the database."""

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db.models import DateTimeField, F, Func, IntegerField, QuerySet, Value

from dashboard.ranges import Range


class PartOf(Func):
    """Which part of a range a moment is in, counted from 1; 0 is before it."""

    function = "width_bucket"
    output_field = IntegerField()

    def __init__(self, moment: Any, range: Range) -> None:
        starts = Value(list(range.starts), output_field=ArrayField(DateTimeField()))
        super().__init__(moment, starts)


def by_part(
    rows: QuerySet[Any], moment: Any, range: Range, /, **figures: Any
) -> dict[int, dict[str, Any]]:
    """`figures` of the rows of each part that has any, by its place from 0."""
    counted = (
        rows.order_by()
        .annotate(part=PartOf(F(moment) if isinstance(moment, str) else moment, range))
        .values("part")
        .annotate(**figures)
    )
    return {row["part"] - 1: row for row in counted if row["part"] > 0}


def column(rows: dict[int, dict[str, Any]], name: str, range: Range) -> tuple[int, ...]:
    """One figure for each part, 0 where there are no rows."""
    return tuple(rows[place][name] or 0 if place in rows else 0 for place in _places(range))


def gappy(rows: dict[int, dict[str, Any]], name: str, range: Range) -> tuple[float | None, ...]:
    """The same with None where there are no rows."""
    return tuple(rows[place][name] if place in rows else None for place in _places(range))


def _places(range: Range) -> Any:
    return (place for place, _ in enumerate(range.starts))
