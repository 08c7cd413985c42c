"""Template tags of the page frame: navigation links, marked where the page belongs to them."""

from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from common.templatetags.interface import icon
from common.web import cached_reverse

register = template.Library()

#: Section of the navigation by the first part of the address.
PLACES = {
    "": "search",
    "similar": "search",
    "chat": "chat",
    "documents": "documents",
    "runs": "documents",
    "sources": "documents",
    "summary": "documents",
    "graph": "graph",
    "memory": "memory",
    "pipelines": "pipelines",
    "new-pipeline": "pipelines",
    "traces": "pipelines",
    "databases": "pipelines",
    "dashboard": "dashboard",
    "keys": "key",
    "models": "model",
    "docs": "docs",
    "admin": "admin",
}


@register.simple_tag(takes_context=True)
def way(context: dict[str, Any], place: str, label: str, url_name: str = "") -> SafeString:
    """A navigation link with its icon, marked on pages of that section."""
    url, request = cached_reverse(url_name or place), context["request"]
    current = ""
    if request.resolver_match is not None:
        if request.path == url:
            current = SafeString(' aria-current="page"')
        elif PLACES.get(request.path.strip("/").partition("/")[0]) == place:
            current = SafeString(' aria-current="true"')
    return format_html('<a href="{}"{}>{}<span>{}</span></a>', url, current, icon(place), label)


@register.simple_tag(takes_context=True)
def tab(context: dict[str, Any], url_name: str, label: str) -> SafeString:
    """A link between pages of one section, marked on the current one."""
    url = cached_reverse(url_name)
    current = SafeString(' aria-current="page"') if context["request"].path == url else ""
    return format_html('<a href="{}"{}>{}</a>', url, current, label)


@register.simple_tag(takes_context=True)
def more_is_current(context: dict[str, Any]) -> bool:
    """Whether the page belongs to the “More” menu of the mobile bar."""
    request = context["request"]
    if request.resolver_match is None:
        return False
    place = PLACES.get(request.path.strip("/").partition("/")[0])
    return place in {"graph", "pipelines", "dashboard", "key", "model", "docs"}
