"""Snippets of passages."""

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from common.text import HIGHLIGHT_END, HIGHLIGHT_START, strip_markdown
from search.results import Snippet

register = template.Library()


@register.filter
def marked(snippet: Snippet, rendering: str = "plain") -> SafeString:
    """The snippet as HTML with highlights in `<mark>`, and an ellipsis where text is cut."""
    text = snippet.text.replace(HIGHLIGHT_START, "\ufffd").replace(HIGHLIGHT_END, "\ufffd")
    parts: list[str] = []
    at = 0
    for start, end in snippet.highlights:
        parts += [text[at:start], HIGHLIGHT_START, text[start:end], HIGHLIGHT_END]
        at = end
    text = "".join([*parts, text[at:]])
    shown = strip_markdown(text) if rendering == "markdown" else text
    html = escape(shown).replace(HIGHLIGHT_START, "<mark>").replace(HIGHLIGHT_END, "</mark>")
    before = "… " if snippet.cut_before else ""
    after = " …" if snippet.cut_after else ""
    return mark_safe(f"{before}{html}{after}")  # noqa: S308 - the text is escaped
