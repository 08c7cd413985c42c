"""When something was said or true."""

from datetime import UTC, datetime

from django.utils import timezone

from common.errors import InvalidInput

#: A day within Python's years in every time zone: PostgreSQL's reach further on both ends, and a
#: row that cannot be read back would hide all others of its user.
FIRST_YEAR, LAST_YEAR = 2, 9998


def moment(at: datetime | None, *, field: str = "at") -> datetime:
    """`at` in UTC, by default now. Raises InvalidInput for a time without a zone, or out of
    reach."""
    if at is None:
        return timezone.now()
    if timezone.is_naive(at):
        raise InvalidInput(f"“{at}” has no time zone. Add one, such as Z for UTC.", field=field)
    if not FIRST_YEAR <= at.year <= LAST_YEAR:
        raise InvalidInput(
            f"The year is from {FIRST_YEAR} to {LAST_YEAR}, not {at.year}.", field=field
        )
    return at.astimezone(UTC)
