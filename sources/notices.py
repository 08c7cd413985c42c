"""Messages about sources that are late, fail, or have stopped. Begin with `update_problem`.

A problem is told once, and once more when a run has ended well: to the owners and whoever made the
source by mail, and to the site's webhook. Messages are rows of a queue, written in the transaction
that finds the problem, and are sent by `sources.tasks.send_notices`. They name the source and
count; what its files are called is only on pages, for those who may see them.
"""

import json
import logging
import smtplib
import time
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.core.cache import cache
from django.core.mail import EmailMessage
from django.db import transaction
from django.db.models import Q
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext, gettext_noop

from accounts.models import Membership, Role
from common.queues import Failure, RetryLimits, WorkQueue
from sources import signatures
from sources.models import DataSource, DataSourceNotice, DataSourceRun
from sources.schedule import next_run

logger = logging.getLogger(__name__)

QUEUE = WorkQueue(
    DataSourceNotice,
    "notices",
    limits=lambda: RetryLimits(
        attempts=settings.NOTICES_MAX_ATTEMPTS,
        outages=settings.NOTICES_MAX_OUTAGES,
        first_seconds=settings.NOTICES_RETRY_SECONDS,
    ),
)
#: Runs in a row that fail before it is told: a server may be away for a while.
FAILED_RUNS = 3
#: A run is late when it has not begun by so many of its intervals, and by this time at least.
LATE_INTERVALS = 2
LATE_AT_LEAST = timedelta(hours=1)
#: Whoever looks less often has slept, and lets the runs of the meantime begin first.
AWAKE_SECONDS = 15 * 60
WEBHOOK_SECONDS = 10.0

Problem = DataSource.Problem

#: What is wrong, as pages say it, with the cure.
PROBLEM_TEXTS: dict[str, str] = {
    Problem.LATE: gettext_noop(
        "The scheduled run has not started. Check that a worker is running and not overloaded."
    ),
    Problem.FAILING: gettext_noop(
        "Several runs in a row failed. It is retried at growing intervals."
    ),
    Problem.STOPPED: gettext_noop("It has stopped. It needs attention before the next run."),
}

# --- finding -------------------------------------------------------------------------------------


def find_problem(
    source: DataSource, *, now: datetime, awake_since: datetime | None = None
) -> Problem | None:
    """What is wrong with the source at `now`, by its row alone. It is late only after the site,
    which was `awake_since` then, had its time to begin."""
    if source.state == DataSource.State.DEAD:
        return Problem.STOPPED
    if source.failures >= FAILED_RUNS:
        return Problem.FAILING
    if source.schedule and source.state == DataSource.State.WAITING and source.due_at is not None:
        interval = (next_run(source.schedule, after=source.due_at) or source.due_at) - source.due_at
        begun = max(source.due_at, awake_since) if awake_since else source.due_at
        if now > begun + max(LATE_INTERVALS * interval, LATE_AT_LEAST):
            return Problem.LATE
    return None


@transaction.atomic
def update_problem(source_id: int, *, has_run_well: bool = False, **options: Any) -> None:
    """Keep what is wrong with a source, and write messages where that has changed.

    A problem is over when a run has ended well; that it is late, also when it has no schedule any
    more. Whoever was told of a problem is told of a worse one, too.
    """
    source = DataSource.objects.select_for_update().get(pk=source_id)
    now = timezone.now()
    found = find_problem(source, now=now, **options)
    known, since = source.problem, source.problem_since or now
    is_late_no_more = known == Problem.LATE and not source.schedule
    if known and found is None and (has_run_well or is_late_no_more):
        source.problem, source.problem_since = "", None
        _write_notices(source, problem=known, is_over=True, since=since)
    elif found is not None and _severity(found) > _severity(known):
        source.problem, source.problem_since = found, since
        _write_notices(source, problem=found, is_over=False, since=since)
    else:
        return
    source.save(update_fields=["problem", "problem_since"])


def _severity(problem: str) -> int:
    """As they are declared, each worse than those before."""
    return Problem.values.index(problem) if problem else -1


def check_sources() -> int:
    """Look for sources whose run has not begun, or whose workers died; returns how many have a new
    problem."""
    now = timezone.now()
    awake_since = cache.get_or_set("sources.awake_since", now, timeout=AWAKE_SECONDS)
    cache.touch("sources.awake_since", AWAKE_SECONDS)
    count = 0
    suspicious = Q(due_at__lt=now - LATE_AT_LEAST) | Q(state=DataSource.State.DEAD)
    unsettled = Q(problem=Problem.LATE, schedule="")
    for source in DataSource.objects.filter(suspicious | unsettled):
        before = source.problem
        update_problem(source.pk, awake_since=awake_since)
        source.refresh_from_db(fields=["problem"])
        count += source.problem != before
    return count


def _write_notices(source: DataSource, *, problem: str, is_over: bool, since: datetime) -> None:
    # What was not sent yet is not sent late: the newest message tells how it is. Whoever was not
    # told of a problem need not hear that it is over.
    unsent = source.notices.exclude(state=DataSourceNotice.State.RUNNING)
    untold = set(unsent.filter(is_over=False).values_list("user", flat=True)) if is_over else set()
    unsent.delete()
    users: list[int | None] = []
    if settings.EMAIL_HOST:
        told = Membership.objects.filter(
            Q(role=Role.OWNER) | Q(user=source.created_by_id),
            workspace=source.workspace_id,
            user__is_active=True,
        ).exclude(user__email="")
        users += told.values_list("user", flat=True)
    if settings.NOTICE_WEBHOOK:
        users.append(None)
    DataSourceNotice.objects.bulk_create(
        DataSourceNotice(
            workspace_id=source.workspace_id,
            source=source,
            user_id=user,
            problem=problem,
            is_over=is_over,
            since=since,
            due_at=timezone.now(),
        )
        for user in users
        if user not in untold
    )


def describe_problem(source: DataSource) -> str:
    """What is wrong with the source, in the language of the page; empty where all is well. It
    tells of a late run also where no worker is there to find it."""
    problem = source.problem or find_problem(source, now=timezone.now())
    return gettext(PROBLEM_TEXTS[problem]) if problem else ""


# --- sending -------------------------------------------------------------------------------------


def send_notice(notice_id: int) -> bool:
    """Send one message, and forget it; returns False where the server is away, so that others need
    not be tried now. What cannot be sent is tried again for some days."""
    token, rows = QUEUE.claim(QUEUE.claimable().filter(pk=notice_id))
    if not rows:
        return True
    (notice,) = rows
    claimed = DataSourceNotice.objects.filter(pk=notice.pk, token=token)
    failure, error = _send(notice)
    if failure is None:
        claimed.delete()
        return True
    logger.warning("message %s about source %s: %s", notice.pk, notice.source_id, error)
    QUEUE.retry_later(claimed, error, failure=failure)
    return failure is not Failure.OUTAGE


def _send(notice: DataSourceNotice) -> tuple[Failure | None, str]:
    """Why it failed, and as words; None where it is sent."""
    try:
        if notice.user is None:
            return _call_webhook(notice)
        language = notice.user.language or settings.LANGUAGE_CODE
        with translation.override(language):
            _mail(notice).send()
    except smtplib.SMTPRecipientsRefused as error:
        return Failure.OWN, f"The mail server takes no mail for this address: {error}"
    except smtplib.SMTPAuthenticationError as error:
        return Failure.OUTAGE, f"The mail server knows no such login: {error}"
    except (OSError, smtplib.SMTPException) as error:
        return Failure.OUTAGE, f"The mail server cannot be reached: {error}"
    return None, ""


def _mail(notice: DataSourceNotice) -> EmailMessage:
    source = notice.source
    values = {"source": source.name, "workspace": source.workspace.name}
    if notice.is_over:
        subject = gettext("“%(source)s” is up to date again") % values
        text = gettext("The last run had no errors.")
    else:
        subject = {
            Problem.LATE: gettext("“%(source)s” is late"),
            Problem.FAILING: gettext("“%(source)s” cannot be read"),
            Problem.STOPPED: gettext("“%(source)s” has stopped"),
        }[Problem(notice.problem)] % values
        text = gettext(PROBLEM_TEXTS[notice.problem])
    run = source.runs.exclude(finished_at=None).first()
    lines = [
        gettext("The source “%(source)s” of the workspace “%(workspace)s”:") % values,
        text,
        *([_run_line(run)] if run else []),
        gettext("Details and the reason are on its page: %(address)s")
        % {"address": _address(source)},
    ]
    domain = settings.DEFAULT_FROM_EMAIL.rpartition("@")[2].rstrip(">")
    assert notice.user is not None
    return EmailMessage(
        # a name may hold no line breaks in a header; services make it one line already
        subject=" ".join(f"[ragsite] {subject}".split()),
        body="\n\n".join(lines) + "\n",
        to=[notice.user.email],
        # The same when it is sent again because nobody knew whether it had arrived.
        headers={
            "Message-ID": f"<source-notice-{notice.pk}@{domain}>",
            "Auto-Submitted": "auto-generated",
        },
    )


def _run_line(run: DataSourceRun) -> str:
    return gettext(
        "Last run: %(listed)d files listed, %(fetched)d fetched, %(deleted)d deleted, %(failed)d"
        " failed."
    ) % {name: getattr(run, name) for name in ("listed", "fetched", "deleted", "failed")}


def _address(source: DataSource) -> str:
    return f"{settings.SITE_URL.rstrip('/')}{reverse('source', args=[source.pk])}"


def _call_webhook(notice: DataSourceNotice) -> tuple[Failure | None, str]:
    import httpx2  # noqa: PLC0415 (runs need it only with connectors that do)

    source = notice.source
    body = json.dumps(
        {
            "type": "source.well" if notice.is_over else "source.problem",
            "timestamp": notice.created_at.isoformat(),
            "data": {
                "workspace": source.workspace.slug,
                "collection": source.collection.slug,
                "source": {"id": source.pk, "name": source.name, "url": _address(source)},
                "problem": notice.problem,
                "since": notice.since.isoformat(),
            },
        }
    ).encode()
    headers = {"Content-Type": "application/json", "User-Agent": "ragsite"}
    if settings.NOTICE_WEBHOOK_SECRET:
        headers |= signatures.sign(
            body,
            secret=settings.NOTICE_WEBHOOK_SECRET,
            message_id=f"notice-{notice.pk}",
            at=int(time.time()),
        )
    try:
        answer = httpx2.post(
            settings.NOTICE_WEBHOOK, content=body, headers=headers, timeout=WEBHOOK_SECONDS
        )
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        return Failure.OUTAGE, f"RAGSITE_NOTICE_WEBHOOK cannot be reached: {error or 'no answer'}."
    if answer.is_success:
        return None, ""
    return Failure.OWN, f"RAGSITE_NOTICE_WEBHOOK answers {answer.status_code}."
