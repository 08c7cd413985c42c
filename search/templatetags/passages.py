"""Snippets of passages."""

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from common.plain_words import END, START, without_signs
from search.results import Snippet

register = template.Library()


@register.filter
def marked(snippet: Snippet, rendering: str = "plain") -> SafeString:
    """The snippet's text, escaped, its highlights in `<mark>`, an ellipsis where text is cut."""
    text = _with_highlights(snippet)
    shown = without_signs(text) if rendering == "markdown" else text
    html = escape(shown).replace(START, "<mark>").replace(END, "</mark>")
    before = "… " if snippet.cut_before else ""
    after = " …" if snippet.cut_after else ""
    return mark_safe(f"{before}{html}{after}")  # noqa: S308 - the text is escaped


def _with_highlights(snippet: Snippet) -> str:
    text = snippet.text.replace(START, "\ufffd").replace(END, "\ufffd")
    parts: list[str] = []
    at = 0
    for start, end in snippet.highlights:
        parts += [text[at:start], START, text[start:end], END]
        at = end
    return "".join([*parts, text[at:]])
