"""Snippets of passages."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from search.results import Snippet

register = template.Library()

#: Marks that a reader of one line does not need: link targets, rules and cells of tables, code
#: and emphasis, headings. Each is found without what a highlight may have cut off.
_MARKS = re.compile(
    r"\]\([^)\s]*\)|!?\[|\]|\|?\s*:?-{3,}:?\s*\||`+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|^\s*#{1,6}\s",
    re.MULTILINE,
)


@register.filter
def marked(snippet: Snippet, rendering: str = "plain") -> SafeString:
    """The snippet's text, escaped, its highlights in `<mark>`, an ellipsis where text is cut."""
    shown = _without_marks if rendering == "markdown" else str
    parts: list[str] = ["… "] if snippet.cut_before else []
    at = 0
    for start, end in snippet.highlights:
        parts += [
            escape(shown(snippet.text[at:start])),
            "<mark>",
            escape(snippet.text[start:end]),
            "</mark>",
        ]
        at = end
    parts.append(escape(shown(snippet.text[at:])))
    if snippet.cut_after:
        parts.append(" …")
    return mark_safe("".join(parts))  # noqa: S308 - every part is escaped


def _without_marks(text: str) -> str:
    return _MARKS.sub("", text).replace("|", " · ")
