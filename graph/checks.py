"""Checks of the graph's settings, and that there is a model for what one is to read."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections

from common.checks import SETTINGS, out_of_bounds
from documents.models import Collection
from inference.base import InferenceError
from inference.handler import has_chat

_AT_LEAST_ONE = (
    "GRAPH_MAX_PROPS_BYTES",
    "GRAPH_EXTRACTION_PASSAGES",
    "GRAPH_EXTRACTION_PARALLEL",
    "GRAPH_EXTRACTION_MAX_TOKENS",
    "GRAPH_EXTRACTION_MAX_ATTEMPTS",
    "GRAPH_EXTRACTION_MAX_OUTAGES",
)
_POSITIVE = ("GRAPH_EXTRACTION_SECONDS", "GRAPH_EXTRACTION_RETRY_SECONDS")
_NOT_NEGATIVE = ("GRAPH_EXTRACTION_TEMPERATURE",)
#: Collections that a warning names.
NAMED = 5


@register(SETTINGS)
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Limits let something through, and times pass."""
    leave_out = "or leave it out."
    return [
        *out_of_bounds(_AT_LEAST_ONE, "graph.E001", f"Set it to 1 or more, {leave_out}", least=1),
        *out_of_bounds(_POSITIVE, "graph.E002", f"Set it to more than 0, {leave_out}", least=1e-9),
        *out_of_bounds(_NOT_NEGATIVE, "graph.E003", f"Set it to 0 or more, {leave_out}", least=0),
    ]


@register(Tags.database)
def check_chat(
    app_configs: Any, *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Collections that a chat model is to read have one."""
    if "default" not in (databases or ()) or not _is_migrated() or _has_chat():
        return []
    rows = Collection.objects.filter(graph=Collection.Graph.LLM).order_by("pk")
    slugs = list(rows.values_list("slug", flat=True)[: NAMED + 1])
    if not slugs:
        return []
    named = ", ".join(slugs[:NAMED]) + (", …" if len(slugs) > NAMED else "")
    return [
        Warning(
            f"The chat model is to read {named} for the graph, and there is none.",
            hint="Set CHAT_BACKEND and CHAT_OPTIONS, or have the collections read by rules.",
            id="graph.W001",
        )
    ]


def _is_migrated() -> bool:
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attname = 'graph')",
            [Collection._meta.db_table],
        )
        return bool(cursor.fetchone()[0])


def _has_chat() -> bool:
    """Whether one is configured: that it cannot be made, other checks say."""
    try:
        return has_chat()
    except InferenceError:
        return True
