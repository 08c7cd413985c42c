"""Pagination of API lists."""

from typing import Any

from django.utils.dateparse import parse_datetime
from rest_framework import exceptions, pagination
from rest_framework.request import Request

from common.errors import InvalidInput

MAX_ID = 2**63 - 1


class CursorPagination(pagination.CursorPagination):
    """Newest first, by id: stable while rows are added, and no full count on a large table.

    What the parameters may be is said and checked by `common.serializers.PageParameters`.
    """

    ordering: str | tuple[str, ...] = "-id"
    page_size = 50
    page_size_query_param = "page_size"
    max_page_size = 200

    def decode_cursor(self, request: Request) -> Any:
        try:
            cursor = super().decode_cursor(request)
        except exceptions.NotFound as error:
            raise _invalid_cursor() from error
        if cursor is not None and not self.is_position(cursor.position):
            raise _invalid_cursor()
        return cursor

    @staticmethod
    def is_position(position: Any) -> bool:
        """Whether this can be a value of the column that the list is ordered by."""
        return position is None or (
            position.isascii()
            and position.isdigit()
            and len(position) < 20
            and int(position) <= MAX_ID
        )

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described: dict[str, Any] = super().get_paginated_response_schema(schema)
        described["required"] = ["next", "previous", "results"]
        for name in ("next", "previous"):
            described["properties"][name].pop("example")
            described["properties"][name]["description"] = (
                f"Address of the {name} page; null where there is none."
            )
        return described


def is_moment(position: Any) -> bool:
    """Whether this can be a moment, where a list is ordered by one."""
    if position is None:
        return True
    try:
        moment = parse_datetime(position)
    except ValueError:
        return False
    return moment is not None and moment.utcoffset() is not None


class OrdinalPagination(CursorPagination):
    """Parts in the order of their whole."""

    ordering = "ordinal"


def _invalid_cursor() -> InvalidInput:
    return InvalidInput(
        "This is no cursor. Follow `next` and `previous` of a page, or leave it out.",
        field="cursor",
    )
