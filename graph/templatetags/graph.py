"""How things of the graph are shown: their sign, and relations in words."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from graph.views.signs import relation_words

register = template.Library()

register.filter("relation", relation_words)


@register.simple_tag
def swatch(thing: Any) -> SafeString:
    """The sign that a thing has in the drawing; its kind stands beside it in words."""
    return format_html(
        '<i class="swatch tone-{} {}" aria-hidden="true"></i>', thing.tone, thing.kind
    )
