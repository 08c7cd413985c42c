"""What answers about memory have in common."""

from datetime import UTC, datetime

from django.utils import timezone
from django.utils.dateparse import parse_datetime

from common.errors import InvalidInput

NOTHING_KEPT = "It is not known who the user is: nothing was kept."


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
