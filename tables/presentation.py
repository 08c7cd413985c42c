"""What pages show of computed answers."""

from collections.abc import Mapping
from typing import Any

from django.contrib.humanize.templatetags.humanize import intcomma

from tables.charts import draw_groups


def computed_view(computed: Mapping[str, Any], *, pk: int) -> dict[str, Any]:
    """The context of `tables/computed.html` for a computed answer as `rag` stores it; `pk` keeps
    the ids of its elements apart."""
    return {
        "computed": {**computed, "shown_count": intcomma(computed["count"])},
        "chart": draw_groups(computed["groups"], period=computed["period"]),
        "pk": pk,
    }
