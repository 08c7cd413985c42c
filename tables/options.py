"""Which rows of a table are read, at every door."""

from typing import Literal

from pydantic import Field

from common.options import Options
from common.translation import gettext_noop
from reading.tables import MAX_ROWS

Comparison = Literal["contains", "equals", "above", "below", "at_least", "at_most"]
PAGE_ROWS = 50


class RowFilter(Options):
    """Conditions that rows meet."""

    words: str = Field(
        default="", max_length=200, description="Only rows with a cell that has this in it."
    )
    column: str = Field(
        default="", max_length=210, description="Only rows whose cell in this column fits `value`."
    )
    comparison: Comparison = Field(
        default="contains",
        description="How the cell fits: numbers and dates may be `above`, `below`, `at_least` or"
        " `at_most` the value.",
    )
    value: str = Field(
        default="",
        max_length=200,
        description="What cells of `column` are compared with. A number as `4000.5`, a date as"
        " `2026-03-01`.",
    )


class PageOptions(Options):
    """Order and page of rows."""

    sort: str = Field(
        default="", max_length=210, description="Order by this column. Default: as in the document."
    )
    descending: bool = Field(default=False, description="The greatest first; empty cells are last.")
    offset: int = Field(default=0, ge=0, le=MAX_ROWS, description="Rows that are passed over.")
    limit: int = Field(default=PAGE_ROWS, ge=1, le=500, description="Rows, at most.")


class RowOptions(PageOptions, RowFilter):
    """Conditions, order and page of rows."""


#: What pages call them.
COMPARISON_LABELS: dict[Comparison, str] = {
    "contains": gettext_noop("contains"),
    "equals": gettext_noop("equals"),
    "above": gettext_noop("above"),
    "below": gettext_noop("below"),
    "at_least": gettext_noop("at least"),
    "at_most": gettext_noop("at most"),
}
