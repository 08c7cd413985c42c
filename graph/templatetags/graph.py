"""How things of the graph are shown: their sign, and relations in words."""

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from graph.presentation import relation_words

register = template.Library()

register.filter("relation", relation_words)


@register.simple_tag
def swatch(tone: int, kind: str) -> SafeString:
    """Coloured marker of a node in the drawing."""
    return format_html('<i class="swatch tone-{} {}" aria-hidden="true"></i>', tone, kind)
