"""Rows as plain data, for JSON."""

from typing import Any

from django.template.defaultfilters import filesizeformat

from memory.models import Context, ExtractionItem, Fact, Pruning


def fact_of(row: Fact) -> dict[str, Any]:
    names = ("key", "value", "valid_from", "valid_to", "origin", "source_id")
    return {name.removesuffix("_id"): getattr(row, name) for name in names}


def context_of(row: Context) -> dict[str, Any]:
    names = ("user_message", "assistant_response", "conversation", "created_at", "origin")
    return {name: getattr(row, name) for name in names}


def item_of(row: ExtractionItem) -> dict[str, Any]:
    names = ("id", "user_id", "key", "state", "attempts", "error", "due_at", "last_message_at")
    return {"workspace": row.workspace.slug, **{name: getattr(row, name) for name in names}}


def pruning_of(row: Pruning) -> dict[str, Any]:
    names = ("user_id", "reason", "rows", "bytes", "until")
    return {"at": row.created_at, **{name: getattr(row, name) for name in names}}


def size_in_words(size: int) -> str:
    return filesizeformat(size).replace("\xa0", " ")
