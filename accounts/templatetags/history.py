"""What was changed lately, on the page of the thing that it is about."""

from typing import Any

from django import template
from django.template import RequestContext

from accounts.models import Change
from accounts.telling import actor_in_words, in_words, more_in_words

register = template.Library()
SHOWN = 8


@register.inclusion_tag("includes/history.html", takes_context=True)
def history(context: RequestContext, kind: str, pk: int, shown: int = SHOWN) -> dict[str, Any]:
    """The last changes of a thing, and of what is in it, for those who may see them."""
    request = context.get("request")
    if request is None or not request.user.is_authenticated:
        return {"changes": []}
    rows = Change.objects.visible_to(request.user).about(kind, pk)
    found = list(rows.select_related("user")[: shown + 1])
    return {"changes": found[:shown], "has_more": len(found) > shown}


register.filter("actor_in_words", actor_in_words)
register.filter("in_words", in_words)
register.filter("more_in_words", more_in_words)
