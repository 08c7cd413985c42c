"""Plain text: paragraphs as they stand, the passage marked to the character."""

import re
from collections.abc import Iterator

from django.utils.html import escape
from django.utils.safestring import mark_safe

from documents.rendering.result import RenderedDocument

#: The indentation behind them is the next paragraph's: in source code it has a meaning.
_BLANK_LINES = re.compile(r"\n(?:[ \t]*\n)+")


def render_plain(
    text: str, *, passage: tuple[int, int] | None, title: str = ""
) -> RenderedDocument:
    """One `<p>` a paragraph; line breaks and indentation inside it are left to the style sheet."""
    parts: list[str] = []
    marked = False
    for start, end in _paragraphs(text):
        html, has_mark = _paragraph(text, start, end, passage, first=not marked)
        marked = marked or has_mark
        parts.append(html)
    return RenderedDocument(html=mark_safe("\n".join(parts)))  # noqa: S308 - escaped below


def _paragraphs(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    for gap in _BLANK_LINES.finditer(text):
        if text[start : gap.start()].strip():
            yield start, gap.start()
        start = gap.end()
    if text[start:].strip():
        yield start, len(text)


def _paragraph(
    text: str, start: int, end: int, passage: tuple[int, int] | None, *, first: bool
) -> tuple[str, bool]:
    if passage is None or passage[1] <= start or passage[0] >= end:
        return f"<p>{escape(text[start:end])}</p>", False
    if passage[0] <= start and end <= passage[1]:
        return f'<p class="passage"{_identity(first)}>{escape(text[start:end])}</p>', True
    from_, to = max(passage[0], start), min(passage[1], end)
    before, inside, after = (
        escape(text[start:from_]),
        escape(text[from_:to]),
        escape(text[to:end]),
    )
    marked = f'<mark class="passage"{_identity(first)}>{inside}</mark>'
    return f"<p>{before}{marked}{after}</p>", True


def _identity(first: bool) -> str:
    return ' id="passage" tabindex="-1"' if first else ""
