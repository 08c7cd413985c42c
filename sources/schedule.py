"""When a source runs next: every so many minutes, or by cron words."""

from datetime import datetime, timedelta

from celery.schedules import ParseException, crontab
from django.utils import timezone
from django.utils.translation import gettext

from common.errors import InvalidInput

MIN_MINUTES = 1
CRON_FIELDS = 5


def next_run(schedule: str, *, after: datetime) -> datetime | None:
    """The first time after `after`, in the site's time zone for cron words; None where the schedule
    is empty. Raises InvalidInput."""
    schedule = schedule.strip()
    if not schedule:
        return None
    if schedule.isdecimal():
        minutes = int(schedule)
        if not MIN_MINUTES <= minutes <= 60 * 24 * 366:
            raise InvalidInput(
                gettext("Enter the minutes between two runs, at least 1 and at most a year."),
                field="schedule",
            )
        return after + timedelta(minutes=minutes)
    words = schedule.split()
    try:
        if len(words) != CRON_FIELDS:
            raise ParseException(f"{len(words)} words")
        minute, hour, day, month, weekday = words
        cron = crontab(
            minute=minute,
            hour=hour,
            day_of_month=day,
            month_of_year=month,
            day_of_week=weekday,
            nowfun=lambda: timezone.localtime(after),
        )
        return after + cron.remaining_estimate(timezone.localtime(after))
    except (ParseException, ValueError, KeyError, IndexError, RuntimeError) as error:
        raise InvalidInput(
            gettext(
                "A schedule is a number of minutes, or five cron fields: minute, hour, day of the"
                " month, month, day of the week, such as `0 6 * * 1-5`. ({error})"
            ).format(error=error),
            field="schedule",
        ) from error
