"""The runs of sources, as a worker does them. Begin with `work_on`."""

import logging
from collections.abc import Callable, Mapping
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import QuerySet
from django.db.models.functions import Now
from django.utils import timezone
from pydantic import ValidationError

from common.errors import ExplainedError, InvalidInput
from common.leases import backoff_seconds
from common.queues import RetryLimits, WorkQueue
from sources import credentials, notices
from sources.connectors import connector_class
from sources.connectors.base import Connector, SourceError
from sources.models import DataSource, DataSourceRun
from sources.schedule import next_run
from sources.synchronisation import Cancelled, ClaimLost, Doubtful, Synchronisation

logger = logging.getLogger(__name__)

QUEUE = WorkQueue(
    DataSource, "sources", limits=lambda: RetryLimits(attempts=settings.SOURCES_MAX_ATTEMPTS)
)
#: How long a worker fetches for one source before others have their turn.
SLICE_SECONDS = 20.0
#: Pauses after failed runs, where the schedule does not make them longer.
FIRST_PAUSE_SECONDS = 60.0
LONGEST_PAUSE_SECONDS = 6 * 3600.0

State, Cause = DataSourceRun.State, DataSourceRun.Cause


def open_connector(kind: str, options: Mapping[str, Any]) -> Connector:
    """A connector with all its options, secrets among them. Raises InvalidInput."""
    made = connector_class(kind)
    try:
        return made(made.Options(**options))  # type: ignore[call-arg]
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        name = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"{name}: {first['msg'].rstrip('.')}.", field=name) from error


def all_options(source: DataSource) -> dict[str, Any]:
    """With its secrets. Raises UnreadableCredentials."""
    return {**source.options, **credentials.decrypt(source.credentials)}


def work_on(
    source_id: int,
    *,
    seconds: float | None = SLICE_SECONDS,
    on_progress: Callable[[DataSourceRun], Any] = lambda run: None,
) -> DataSourceRun | None:
    """Claim a source that is due, and go on with its run, or begin one, for about so many seconds.

    Returns the run, which is finished or goes on when it is called again; None where nothing is due
    or somebody else has it. A failure of the source is in the run, not raised.
    """
    token, rows = QUEUE.claim(QUEUE.claimable().filter(pk=source_id))
    if not rows:
        return None
    (source,) = rows
    claimed = DataSource.objects.filter(pk=source.pk, token=token)
    run = source.runs.filter(finished_at=None).select_related("source").last()
    if run is None:
        run = DataSourceRun.objects.create(workspace_id=source.workspace_id, source=source)
    with QUEUE.renew_lease(claimed):
        try:
            with open_connector(source.connector, all_options(source)) as connector:
                work = Synchronisation(
                    run, connector=connector, claimed=claimed, on_progress=on_progress
                )
                if not work.work(seconds=seconds):
                    _release(claimed)
                    return run
            failed = run.failed or source.items.filter(failures__gt=0).exists()
            # Its error is a note of the listing, if there is one.
            _end(run, claimed, State.PARTIAL if failed else State.SUCCEEDED, run.error)
        except ClaimLost:
            logger.warning("the claim on source %s was lost", source.pk)
        except Cancelled:
            _end(run, claimed, State.CANCELLED)
        except Doubtful as error:
            _end(run, claimed, State.STOPPED, str(error), is_permanent=True)
        except SourceError as error:
            _end(run, claimed, State.FAILED, str(error), is_permanent=error.is_permanent)
        except (ExplainedError, OSError) as error:
            _end(run, claimed, State.FAILED, str(error))
        except Exception as error:
            logger.exception("source %s failed", source.pk)
            _end(run, claimed, State.FAILED, f"Unexpected: {type(error).__name__}. See the log.")
    return run


def _release(claimed: QuerySet[DataSource]) -> None:
    claimed.update(
        state=DataSource.State.WAITING, due_at=Now(), token=None, leased_until=None, attempts=0
    )


def _end(
    run: DataSourceRun,
    claimed: QuerySet[DataSource],
    state: str,
    error: str = "",
    *,
    is_permanent: bool = False,
) -> None:
    """End the run, and say when the source is due again."""
    with transaction.atomic():
        source = claimed.select_for_update().first()
        if source is None:
            return
        now = timezone.now()
        run.state, run.error, run.finished_at = state, error, now
        run.save(update_fields=["state", "error", "finished_at"])
        failures = source.failures + 1 if state in {State.FAILED, State.STOPPED} else 0
        has_run_well = state in {State.SUCCEEDED, State.PARTIAL}
        due = _next_due(source.schedule, failures, now, is_requested=run.cause == Cause.PERSON)
        if source.run_again and has_run_well:
            due = now
        claimed.update(
            state=DataSource.State.DEAD if is_permanent else DataSource.State.WAITING,
            due_at=None if is_permanent else due,
            run_again=False,
            failures=failures,
            error=error,
            token=None,
            leased_until=None,
            attempts=0,
        )
        notices.update_problem(source.pk, has_run_well=has_run_well)


def _next_due(
    schedule: str, failures: int, now: datetime, *, is_requested: bool
) -> datetime | None:
    """Without a schedule only what nobody has asked for and watches is tried again after a failure,
    such as the run of a webhook."""
    due = next_run(schedule, after=now)
    if not failures or (due is None and is_requested):
        return due
    pause = backoff_seconds(failures, first=FIRST_PAUSE_SECONDS, longest=LONGEST_PAUSE_SECONDS)
    again = now + timedelta(seconds=pause)
    return again if due is None else max(due, again)
