"""How answers to a model are worded: what was stored is data in them, and looks like it."""

import json
from datetime import UTC, datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from common.errors import InvalidInput
from memory.unseen import written_out

#: More of one text is not worth a model's attention.
SHOWN_CHARACTERS = 2000
NOTHING_KEPT = "It is not known who the user is: nothing was kept."


def quoted(text: str) -> str:
    """`text` as a JSON string on one line: what was stored can forge no entry of an answer."""
    quoted_text = json.dumps(text, ensure_ascii=False)
    return written_out(quoted_text, lambda letter: json.dumps(letter)[1:-1])


def found(number: int, what: str) -> str:
    """The first line of a list."""
    return f"Found {number} {what}:" if number else f"Found 0 {what}."


def shortened(text: str, most: int = SHOWN_CHARACTERS) -> str:
    """The beginning of a long text."""
    return text if len(text) <= most else f"{text[:most]}…"


def told(moment: datetime) -> str:
    """A moment to the minute."""
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def given_moment(text: str | None) -> datetime | None:
    """The moment that a model wrote, in the site's time zone where it names none.

    Raises InvalidInput.
    """
    if text is None:
        return None
    try:
        moment = parse_datetime(text)
    except ValueError:
        moment = None
    if moment is None:
        raise InvalidInput("as_of is a moment such as 2026-05-01T12:00:00Z.", field="as_of")
    return moment if timezone.is_aware(moment) else timezone.make_aware(moment)
