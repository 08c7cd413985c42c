"""Snippets of passages."""

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from search.results import Snippet

register = template.Library()


@register.filter
def marked(snippet: Snippet) -> SafeString:
    """The snippet's text, escaped, its highlights in `<mark>`, an ellipsis where text is cut."""
    parts: list[str] = ["… "] if snippet.cut_before else []
    at = 0
    for start, end in snippet.highlights:
        parts += [
            escape(snippet.text[at:start]),
            "<mark>",
            escape(snippet.text[start:end]),
            "</mark>",
        ]
        at = end
    parts.append(escape(snippet.text[at:]))
    if snippet.cut_after:
        parts.append(" …")
    return mark_safe("".join(parts))  # noqa: S308 - every part is escaped
