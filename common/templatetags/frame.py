"""Template tags of the frame: where a person is on the site, and the ways from there."""

from typing import Any

from django import template
from django.http import HttpRequest
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.addresses import address
from common.templatetags.interface import icon

register = template.Library()

#: What an address begins with, and the place that it belongs to.
PLACES = {
    "": "search",
    "similar": "search",
    "chat": "chat",
    "documents": "documents",
    "runs": "documents",
    "graph": "graph",
    "memory": "memory",
    "pipelines": "pipelines",
    "new-pipeline": "pipelines",
    "traces": "pipelines",
    "dashboard": "dashboard",
    "keys": "key",
    "docs": "docs",
    "admin": "admin",
}


@register.simple_tag(takes_context=True)
def way(context: dict[str, Any], place: str, label: str, url_name: str = "") -> SafeString:
    """A link to a place, with its picture; marked where the page is that place or within it."""
    url = address(url_name or place)
    return format_html(
        '<a href="{}"{}>{}<span>{}</span></a>',
        url,
        _current(context["request"], place, url),
        icon(place),
        label,
    )


def _current(request: HttpRequest, place: str, url: str) -> SafeString | str:
    """`page` for the very page, `true` for one within it. A page that is not there is in none."""
    if request.resolver_match is None:
        return ""
    if request.path == url:
        return SafeString(' aria-current="page"')
    within = PLACES.get(request.path.strip("/").partition("/")[0]) == place
    return SafeString(' aria-current="true"') if within else ""


@register.simple_tag(takes_context=True)
def tab(context: dict[str, Any], url_name: str, label: str) -> SafeString:
    """A link between pages of one place, marked where the page is this one."""
    url = address(url_name)
    current = SafeString(' aria-current="page"') if context["request"].path == url else ""
    return format_html('<a href="{}"{}>{}</a>', url, current, label)


@register.simple_tag(takes_context=True)
def more_is_current(context: dict[str, Any]) -> bool:
    """Whether the page is one that the bar of a telephone keeps under "More"."""
    request = context["request"]
    if request.resolver_match is None:
        return False
    place = PLACES.get(request.path.strip("/").partition("/")[0])
    return place in {"graph", "pipelines", "dashboard", "key", "docs"}
