"""Template filters: labels for codes stored in the tables."""

import re

from django import template
from django.utils.translation import gettext, gettext_noop

from common.translation import format_number
from documents.languages import language_name
from documents.models import Document
from documents.page_images import file_of, thumbnail_url
from reading.code_languages import LANGUAGES

register = template.Library()
#: Django's own `language_name` does not translate.
register.filter("language_label", language_name)

GIST = 64
_LINK = re.compile(r"!?\[([^\]\n]*)\]\([^)\s]*\)")
_SIGNS = re.compile(r"(?<!\S)(?:#{1,6}|[-*>|+]|\|?[-:|]{3,})(?!\S)|[`*|]+")

MEDIA_TYPES = {
    "application/pdf": "PDF",
    "image/png": gettext_noop("PNG picture"),
    "image/jpeg": gettext_noop("JPEG picture"),
    "image/tiff": gettext_noop("TIFF picture"),
    "image/webp": gettext_noop("WebP picture"),
    "image/gif": gettext_noop("GIF picture"),
    "image/bmp": gettext_noop("BMP picture"),
    "image/avif": gettext_noop("AVIF picture"),
    "image/heic": gettext_noop("HEIC picture"),
    "application/epub+zip": "EPUB",
    "application/json": "JSON",
    "application/rtf": "RTF",
    "application/vnd.oasis.opendocument.presentation": gettext_noop("OpenDocument slides"),
    "application/vnd.oasis.opendocument.spreadsheet": gettext_noop("OpenDocument sheet"),
    "application/vnd.oasis.opendocument.text": gettext_noop("OpenDocument text"),
    "application/x-subrip": gettext_noop("Subtitles"),
    "application/xhtml+xml": "HTML",
    "application/xml": "XML",
    "application/zip": gettext_noop("ZIP archive"),
    "application/vnd.ragsite.chunk+json": "Chunk JSON",
    "application/x-ndjson": "JSON Lines",
    "application/msword": "Word",
    "application/vnd.ms-excel": "Excel",
    "application/vnd.ms-powerpoint": "PowerPoint",
    "application/vnd.ms-excel.sheet.binary.macroenabled.12": "Excel",
    "application/vnd.ms-outlook": gettext_noop("Outlook mail"),
    "application/vnd.openxmlformats-officedocument.presentationml.presentation": "PowerPoint",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "Excel",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "Word",
    "message/rfc822": gettext_noop("Mail"),
    "text/csv": "CSV",
    "text/html": "HTML",
    "text/markdown": "Markdown",
    "text/plain": gettext_noop("Text"),
    "text/vtt": gettext_noop("Subtitles"),
    "text/x-rst": "reStructuredText",
    **{language.media_type: language.label for language in LANGUAGES},
}
#: State of a document, an item or a run → colour, which is never the only sign.
TONES = {
    "ready": "good",
    "succeeded": "good",
    "failed": "bad",
    "partial": "warn",
    "cancelled": "calm",
    "skipped": "calm",
    "waiting": "calm",
    "queued": "calm",
}


@register.filter
def media_label(media_type: str) -> str:
    """`application/pdf` → “PDF”; an unknown type by the part behind the slash."""
    if media_type in MEDIA_TYPES:
        return gettext(MEDIA_TYPES[media_type])
    return media_type.rpartition("/")[2] or gettext("Unknown")


@register.filter
def thumbnail(document: Document, collection_slug: str) -> str:
    """The address of a small image of its first page; empty if it has no pages."""
    return "" if file_of(document) is None else thumbnail_url(collection_slug, document.pk, 1)


@register.filter
def tone(state: str) -> str:
    """The colour of a state; “busy” for unfinished ones."""
    return TONES.get(state, "busy")


@register.filter
def duration(seconds: float | None) -> str:
    """Seconds for people: “40 ms”, “4 s”, “3 min 20 s”, “2 h 5 min”."""
    if seconds is None:
        return "–"
    whole = round(seconds)
    if 0 < seconds < 0.095:
        return f"{max(1, round(seconds * 1000))} ms"
    if seconds < 10:
        return f"{format_number(seconds, 1)} s"
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


#: Thing and whether it is counted by the second, otherwise by the minute → text.
RATES = {
    ("file", True): gettext_noop("{number} files a second"),
    ("file", False): gettext_noop("{number} files a minute"),
    ("passage", True): gettext_noop("{number} passages a second"),
    ("passage", False): gettext_noop("{number} passages a minute"),
    ("token", True): gettext_noop("{number} tokens a second"),
    ("token", False): gettext_noop("{number} tokens a minute"),
}


@register.filter
def rate(per_second: float, thing: str) -> str:
    """How many things a second, or a minute where they are slow: “2.3 passages a second”."""
    is_quick = per_second >= 1
    number = per_second if is_quick else per_second * 60
    shown = format_number(number, 1 if number < 10 else 0)
    return gettext(RATES[thing, is_quick]).format(number=shown)


@register.filter
def place_label(location: str) -> str:
    """`page 3` and `row 7` in the language of the page; other locations as they are."""
    kind, _, label = location.partition(" ")
    if kind == "page" and label:
        return gettext("page {label}").format(label=label)
    if kind == "row" and label.isdigit():
        return gettext("row {label}").format(label=label)
    return location


@register.filter
def metadata_text(value: object) -> str:
    """A value of metadata for people: lists as “a, b”, objects as “name: value; name: value”."""
    match value:
        case list():
            return ", ".join(map(metadata_text, value))
        case dict():
            return "; ".join(f"{name}: {metadata_text(each)}" for name, each in value.items())
    return str(value)


@register.filter
def gist(text: str) -> str:
    """The beginning of a passage on one line, without Markdown markup."""
    line = " ".join(_SIGNS.sub(" ", _LINK.sub(r"\1", text[:300])).split())
    return line if len(line) <= GIST else line[: GIST - 1].rstrip() + "…"
