"""Snippets of passages."""

import re

from django import template
from django.utils.html import escape
from django.utils.safestring import SafeString, mark_safe

from search.results import Snippet

register = template.Library()

#: Around a highlight, until the text is escaped.
_START, _END = "\ue000", "\ue001"
#: Where a link leads.
_TARGET = re.compile(r"\]\([^)\s]*\)")
#: Marks that a reader of one line does not need: code, emphasis, headings, ends of links. Each is
#: found without what a highlight may have cut off.
_MARKS = re.compile(
    r"!?\[|\]|`+|\*{1,3}(?=\S)|(?<=\S)\*{1,3}|^\s*#{1,6}\s",
    re.MULTILINE,
)
#: The line between the head of a table and its rows, and the ends of a row.
_RULE = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)+[ \t]*:?-*:?[ \t]*(?:\n|\Z)", re.MULTILINE)
_ROW_START = re.compile(r"^[ \t]*\|[ \t]*", re.MULTILINE)
_ROW_END = re.compile(r"[ \t]*\|[ \t]*$(?!\Z)", re.MULTILINE)
_LAST_ROW_END = re.compile(r"[ \t]*\|\s*\Z")


@register.filter
def marked(snippet: Snippet, rendering: str = "plain") -> SafeString:
    """The snippet's text, escaped, its highlights in `<mark>`, an ellipsis where text is cut."""
    text = _with_highlights(snippet)
    shown = _without_marks(text) if rendering == "markdown" else text
    html = escape(shown).replace(_START, "<mark>").replace(_END, "</mark>")
    before = "… " if snippet.cut_before else ""
    after = " …" if snippet.cut_after else ""
    return mark_safe(f"{before}{html}{after}")  # noqa: S308 - the text is escaped


def _with_highlights(snippet: Snippet) -> str:
    text = snippet.text.replace(_START, "\ufffd").replace(_END, "\ufffd")
    parts: list[str] = []
    at = 0
    for start, end in snippet.highlights:
        parts += [text[at:start], _START, text[start:end], _END]
        at = end
    return "".join([*parts, text[at:]])


def _without_marks(text: str) -> str:
    """One line of words. Cells of a table are parted by dots, its rows by semicolons."""
    text = _RULE.sub("", _MARKS.sub("", _TARGET.sub(_without_target, text)))
    text = _ROW_END.sub(";", _LAST_ROW_END.sub("", _ROW_START.sub("", text)))
    return re.sub(r"\s*\|\s*", " · ", text)


def _without_target(link: re.Match[str]) -> str:
    """A highlight that begins or ends in an address is not torn apart; whole ones go with it."""
    return "" if link[0].count(_START) == link[0].count(_END) else link[0]
