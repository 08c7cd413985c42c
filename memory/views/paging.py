"""Pages of what has a time, newest first, without counting it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Generic, TypeVar

from django.db.models import Model, Q, QuerySet

M = TypeVar("M", bound=Model)

PAGE_SIZE = 25
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Turns(Generic[M]):
    """A page's rows. `newer` and `older` are parameters of the pages beside it, or empty."""

    rows: list[M]
    newer: str
    older: str


def page_by_time(
    queryset: QuerySet[M],
    params: Mapping[str, Any],
    *,
    size: int = PAGE_SIZE,
    field: str = "created_at",
) -> Turns[M]:
    """The page behind `?before=PLACE`, in front of `?after=PLACE`, or the first one, by `field`.

    A place is a time and an id: turns told late stand where they were said.
    """
    before, after = _place(params.get("before")), _place(params.get("after"))
    if after is not None:
        moment, pk = after
        newer = queryset.filter(Q(**{f"{field}__gt": moment}) | Q(**{field: moment, "pk__gt": pk}))
        rows = list(newer.order_by(field, "pk")[: size + 1])
        has_newer, has_older = len(rows) > size, True
        rows = rows[:size][::-1]
    else:
        older = queryset
        if before is not None:
            moment, pk = before
            older = older.filter(Q(**{f"{field}__lt": moment}) | Q(**{field: moment, "pk__lt": pk}))
        rows = list(older.order_by(f"-{field}", "-pk")[: size + 1])
        has_newer, has_older = before is not None, len(rows) > size
        rows = rows[:size]
    return Turns(
        rows=rows,
        newer=_written(rows[0], field) if rows and has_newer else "",
        older=_written(rows[-1], field) if rows and has_older else "",
    )


def _written(row: Model, field: str) -> str:
    return f"{(getattr(row, field) - _EPOCH) // timedelta(microseconds=1)}.{row.pk}"


def _place(value: Any) -> tuple[datetime, int] | None:
    written, dot, pk = str(value or "").partition(".")
    sign, digits = (-1, written[1:]) if written.startswith("-") else (1, written)
    if not (dot and _is_number(digits) and _is_number(pk)):
        return None
    try:
        return _EPOCH + timedelta(microseconds=sign * int(digits)), int(pk)
    except OverflowError:
        return None


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) < 19
