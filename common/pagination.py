"""Pages of the lists on web pages, newest first, without counting them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

from common.text import parse_integer

M = TypeVar("M", bound=Model)

PAGE_SIZE = 50
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """Rows of a page. `newer` and `older` are the values of `?after=` and `?before=` for the
    neighbouring pages, or empty."""

    rows: list[M]
    newer: str
    older: str


def newest_first(
    queryset: QuerySet[M], params: Mapping[str, Any], *, size: int = PAGE_SIZE, field: str = ""
) -> Page[M]:
    """The page after `?before=PLACE`, before `?after=PLACE`, or the first one. Ordered by the
    datetime `field` and the id, or by the id alone.

    It does not shift while rows are added, and costs the same at any depth (keyset pagination).
    """
    names = (field, "pk") if field else ("pk",)

    def beyond(place: list[Any], comparison: str) -> Q:
        last = Q(**{f"{names[-1]}__{comparison}": place[-1]})
        if not field:
            return last
        return Q(**{f"{field}__{comparison}": place[0]}) | Q(**{field: place[0]}) & last

    def place_of(row: M) -> str:
        if not field:
            return str(row.pk)
        return f"{(getattr(row, field) - _EPOCH) // timedelta(microseconds=1)}.{row.pk}"

    before, after = (_parse_place(params.get(name), len(names)) for name in ("before", "after"))
    if after is not None:
        rows = list(queryset.filter(beyond(after, "gt")).order_by(*names)[: size + 1])
        has_newer, has_older = len(rows) > size, True
        rows = rows[:size][::-1]
    else:
        older = queryset if before is None else queryset.filter(beyond(before, "lt"))
        rows = list(older.order_by(*(f"-{name}" for name in names))[: size + 1])
        has_newer, has_older = before is not None, len(rows) > size
        rows = rows[:size]
    return Page(
        rows=rows,
        newer=place_of(rows[0]) if rows and has_newer else "",
        older=place_of(rows[-1]) if rows and has_older else "",
    )


def _parse_place(value: Any, length: int) -> list[Any] | None:
    """The id, or a moment and the id; None for anything else."""
    *moment, pk = parts = str(value or "").split(".")
    digits = [moment[0].removeprefix("-"), pk] if moment else [pk]
    if len(parts) != length or None in map(parse_integer, digits):
        return None
    try:
        return [_EPOCH + timedelta(microseconds=int(each)) for each in moment] + [int(pk)]
    except OverflowError:
        return None
