"""Checks of the graph's settings, and that there is a model for what one is to read."""

from collections.abc import Sequence
from typing import Any

from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections

from common import features
from common.checks import SETTINGS, out_of_bounds
from documents.models import Collection
from inference.chat_models import chosen_models
from inference.interfaces import InferenceError
from inference.model_registry import has_chat

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
MAX_NAMED = 5


@register(SETTINGS)
def check_settings(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """Limits and durations have sensible values."""
    leave_out = "or leave it out."
    return [
        *out_of_bounds(_AT_LEAST_ONE, "graph.E001", f"Set it to 1 or more, {leave_out}", minimum=1),
        *out_of_bounds(
            _POSITIVE, "graph.E002", f"Set it to more than 0, {leave_out}", minimum=1e-9
        ),
        *out_of_bounds(_NOT_NEGATIVE, "graph.E003", f"Set it to 0 or more, {leave_out}", minimum=0),
    ]


@register(Tags.database)
def check_chat(
    app_configs: Any, *, databases: Sequence[str] | None = None, **kwargs: Any
) -> list[CheckMessage]:
    """Warns of collections to be extracted by a chat model whose workspace has none."""
    if "default" not in (databases or ()):
        return []
    with connections["default"].cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM pg_attribute"
            " WHERE attrelid = to_regclass(%s) AND attname = 'graph')",
            [Collection._meta.db_table],
        )
        is_migrated = bool(cursor.fetchone()[0])
    try:
        if not (is_migrated and features.is_on("graph")) or has_chat():
            return []
    except InferenceError:  # another check reports it
        return []
    rows = Collection.objects.filter(graph=Collection.Graph.LLM)
    rows = rows.exclude(workspace__in=chosen_models()).order_by("pk")
    slugs = list(rows.values_list("slug", flat=True)[: MAX_NAMED + 1])
    if not slugs:
        return []
    named = ", ".join(slugs[:MAX_NAMED]) + (", …" if len(slugs) > MAX_NAMED else "")
    return [
        Warning(
            f"The chat model is to read {named} for the graph, and there is none.",
            hint="Set CHAT_BACKEND and CHAT_OPTIONS, or have the collections read by rules.",
            id="graph.W001",
        )
    ]
