"""Pages of a list, newest first, without counting it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from django.db.models import Model, QuerySet

M = TypeVar("M", bound=Model)

PAGE_SIZE = 50


@dataclass(frozen=True, slots=True)
class Page(Generic[M]):
    """Rows by descending id. `newer` and `older` are query strings of the neighbouring pages, or
    empty."""

    rows: list[M]
    newer: str
    older: str


def page_by_id(
    queryset: QuerySet[M], params: Mapping[str, Any], *, size: int = PAGE_SIZE
) -> Page[M]:
    """The page after `?before=ID`, before `?after=ID`, or the first one.

    It does not shift while rows are added, and costs the same at any depth (keyset pagination).
    """
    before, after = _parse_id(params.get("before")), _parse_id(params.get("after"))
    if after is not None:
        rows = list(queryset.filter(pk__gt=after).order_by("pk")[: size + 1])
        has_newer, has_older = len(rows) > size, True
        rows = rows[:size][::-1]
    else:
        older = queryset if before is None else queryset.filter(pk__lt=before)
        rows = list(older.order_by("-pk")[: size + 1])
        has_newer, has_older = before is not None, len(rows) > size
        rows = rows[:size]
    if not rows:
        return Page(rows=[], newer="", older="")
    return Page(
        rows=rows,
        newer=f"after={rows[0].pk}" if has_newer else "",
        older=f"before={rows[-1].pk}" if has_older else "",
    )


def _parse_id(value: Any) -> int | None:
    text = str(value or "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
