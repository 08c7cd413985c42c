"""ISO 8601 dates and times as spans, so that a day, a month or a year can be compared with."""

import re
from datetime import UTC, date, datetime, timedelta

_YEAR_OR_MONTH = re.compile(r"(\d{4})(?:-(\d\d))?", re.ASCII)


def time_span(text: str) -> tuple[datetime, datetime]:
    """[first instant, first instant behind it) of what `text` means, in its zone or else UTC.

    `2024`, `2024-05` and `2024-05-31` span a year, a month, a day; a time of day is an instant.
    Raises ValueError for anything else.
    """
    if partial := _YEAR_OR_MONTH.fullmatch(text):
        year, month = int(partial[1]), int(partial[2] or 12)
        start = date(year, int(partial[2] or 1), 1)
        return _midnight(start), _midnight(date(year + month // 12, month % 12 + 1, 1))
    try:
        return _day_or_instant(text)
    except OverflowError as error:  # the last day of the calendar has no next
        raise ValueError(text) from error


def _day_or_instant(text: str) -> tuple[datetime, datetime]:
    try:
        start = _midnight(date.fromisoformat(text))
    except ValueError:
        moment = datetime.fromisoformat(text)
        # In UTC, because PostgreSQL refuses offsets that Python takes.
        moment = moment.astimezone(UTC) if moment.tzinfo else moment.replace(tzinfo=UTC)
        return moment, moment + datetime.resolution
    return start, start + timedelta(days=1)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)
