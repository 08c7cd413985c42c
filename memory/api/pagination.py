"""Pages of what is remembered, in the order that a person thinks of it."""

from typing import Any

from common.pagination import CursorPagination, is_moment
from memory.api.serializers import NOBODY


class MemoryPagination(CursorPagination):
    """Of one user. Several rows may have one place in the order: those are counted through."""

    offset_cutoff = 1_000_000

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        described = super().get_paginated_response_schema(schema)
        user_id = {"type": "string", "nullable": True, "description": NOBODY}
        described["properties"] = {"user_id": user_id, **described["properties"]}
        described["required"] = ["user_id", *described["required"]]
        return described


class NewestFirst(MemoryPagination):
    """By a moment."""

    is_position = staticmethod(is_moment)


class ContextPagination(NewestFirst):
    """What was said last comes first."""

    ordering = ("-created_at", "-id")


class ConversationPagination(NewestFirst):
    """Where the user wrote last comes first."""

    ordering = ("-last_message_at", "-id")


class HistoryPagination(NewestFirst):
    """What holds, or held last, comes first."""

    ordering = ("-valid_from", "-id")


class FactPagination(MemoryPagination):
    """By key."""

    ordering = "key"

    @staticmethod
    def is_position(position: Any) -> bool:
        return position is None or "\0" not in position
