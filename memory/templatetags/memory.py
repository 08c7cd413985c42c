"""Template tags: labels of keys, states and times, and URLs that keep the user."""

import re
import unicodedata
from datetime import datetime
from typing import Any

from django import template
from django.template import Context
from django.template.defaultfilters import capfirst
from django.utils.formats import date_format
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.timezone import localtime
from django.utils.translation import gettext, gettext_noop

register = template.Library()

#: State of a conversation → colour, which is never the only sign.
STATE_COLOURS = {"waiting": "calm", "running": "busy", "dead": "bad", "idle": "good"}
_BIDI_MARKS = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Unicode categories: controls, formats, private use, separators of lines and paragraphs.
_INVISIBLE_CATEGORIES = {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"}

STATE_LABELS = {
    "waiting": gettext_noop("Waiting"),
    "running": gettext_noop("Being read"),
    "dead": gettext_noop("Given up"),
    "idle": gettext_noop("Read"),
}


@register.simple_tag(takes_context=True)
def to(context: Context, name: str, *args: Any, **params: Any) -> str:
    """URL of a page about the same user's memory."""
    address: str = context["whose"].url(name, *args, **params)
    return address


@register.filter
def label(key: str) -> str:
    """Human-readable form of a key: `home_city` becomes “Home city”."""
    return capfirst(key.replace("_", " "))


@register.filter
def plain(text: str) -> str:
    """One line without direction marks, where no element can isolate them."""
    return " ".join(_BIDI_MARKS.sub("", text).split())


@register.filter
def visible(name: str) -> str:
    """A name with invisible characters escaped, so that different names look different."""
    return "".join(
        f"⟨U+{ord(letter):04X}⟩"
        if unicodedata.category(letter) in _INVISIBLE_CATEGORIES
        else letter
        for letter in name
    )


@register.filter
def reading_tone(state: str) -> str:
    """The colour of a conversation's state."""
    return STATE_COLOURS.get(state, "calm")


@register.filter
def reading_label(state: str) -> str:
    return gettext(STATE_LABELS.get(state, state))


@register.simple_tag
def day(moment: datetime) -> SafeString:
    """A date, with the exact time on hover."""
    return _time_element(moment, gettext("j M Y"))


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """A time of the day, with the date on hover."""
    return _time_element(moment, "H:i")


def _time_element(moment: datetime, text: str) -> SafeString:
    local = localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        date_format(local, gettext("j F Y, H:i:s T")),
        date_format(local, text),
    )
