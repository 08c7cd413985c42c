"""Template tag: recent changes of an object, on its page."""

from typing import Any

from django import template
from django.template import RequestContext

from accounts.audit import actor_label, describe_details, summarize
from accounts.models import Change

register = template.Library()
LISTED_CHANGES = 8


@register.inclusion_tag("includes/history.html", takes_context=True)
def history(
    context: RequestContext, kind: str, pk: int, limit: int = LISTED_CHANGES
) -> dict[str, Any]:
    """The last changes of an object and its contents, for users who may see them."""
    request = context.get("request")
    if request is None or not request.user.is_authenticated:
        return {"changes": []}
    rows = Change.objects.visible_to(request.user).about(kind, pk)
    found = list(rows.select_related("user")[: limit + 1])
    return {"changes": found[:limit], "has_more": len(found) > limit}


register.filter("actor_in_words", actor_label)
register.filter("in_words", summarize)
register.filter("more_in_words", describe_details)
