"""Template tags: icons, relative times, bars."""

from datetime import datetime
from functools import cache

from django import template
from django.contrib.humanize.templatetags.humanize import naturaltime
from django.templatetags.static import static
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext

from common.stored_messages import translated_message

register = template.Library()
register.filter("translated", translated_message)


@register.simple_tag
@cache
def icon(name: str) -> SafeString:
    """A picture beside a word that says the same; for a picture alone, label its button."""
    return format_html(
        '<svg class="icon" aria-hidden="true"><use href="{}#{}"/></svg>', static("icons.svg"), name
    )


@register.simple_tag
def ago(moment: datetime | None) -> SafeString | str:
    """A relative time, with the exact one on hover."""
    if moment is None:
        return "–"
    exact = date_format(localtime(moment), gettext("j F Y, H:i:s T"))
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), exact, naturaltime(moment)
    )


@register.simple_tag
def bar(share: float, kind: str = "") -> SafeString:
    """A thin bar filled to `share`, 0..1. Decoration: say the number in words beside it."""
    filled = round(100 * min(max(share, 0.0), 1.0), 1)
    return format_html(
        '<svg class="bar {}" viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="bar-rest" width="100" height="4"/>'
        '<rect class="bar-fill" width="{}" height="4"/></svg>',
        kind,
        filled,
    )
