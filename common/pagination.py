"""Pagination of API lists."""

from rest_framework import pagination


class CursorPagination(pagination.CursorPagination):
    """Newest first, by id: stable while rows are added, and no full count on a large table."""

    ordering = "-id"
    page_size_query_param = "page_size"
    max_page_size = 200
