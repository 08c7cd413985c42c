"""Words for what memory holds in keys, codes and times, and addresses that stay with its user."""

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

register = template.Library()

#: State of a conversation → colour, which is never the only sign.
TONES = {"waiting": "calm", "running": "busy", "dead": "bad", "idle": "good"}
_DIRECTION = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
#: Unicode categories: controls, formats, private use, separators of lines and paragraphs.
_UNSEEN = {"Cc", "Cf", "Co", "Cn", "Zl", "Zp"}

LABELS = {"waiting": "Waiting", "running": "Being read", "dead": "Given up", "idle": "Read"}


@register.simple_tag(takes_context=True)
def to(context: Context, name: str, *args: Any, **params: Any) -> str:
    """The address of a page about the same user's memory."""
    address: str = context["whose"].url(name, *args, **params)
    return address


@register.filter
def label(key: str) -> str:
    """`home_city` → “Home city”."""
    return capfirst(key.replace("_", " "))


@register.filter
def plain(text: str) -> str:
    """One line without marks of direction, for where no element keeps them from what follows."""
    return " ".join(_DIRECTION.sub("", text).split())


@register.filter
def visible(name: str) -> str:
    """A name in which what nobody would see is written out: two that look alike are two."""
    return "".join(
        f"⟨U+{ord(letter):04X}⟩" if unicodedata.category(letter) in _UNSEEN else letter
        for letter in name
    )


@register.filter
def reading_tone(state: str) -> str:
    """The colour of a conversation's state."""
    return TONES.get(state, "calm")


@register.filter
def reading_label(state: str) -> str:
    """A conversation's state in words."""
    return LABELS.get(state, state)


@register.simple_tag
def day(moment: datetime) -> SafeString:
    """A date, with the exact time on hover."""
    return _shortly(moment, "j M Y")


@register.simple_tag
def clock(moment: datetime) -> SafeString:
    """A time of the day, with the date on hover."""
    return _shortly(moment, "H:i")


def _shortly(moment: datetime, shown: str) -> SafeString:
    local = localtime(moment)
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        date_format(local, "j F Y, H:i:s T"),
        date_format(local, shown),
    )
