"""Runs against their items, and open items against their documents."""

from django.db import connection, transaction
from django.utils import timezone

from documents.ingestion import settling
from documents.models import IngestionRun
from documents.validation.base import Check, Scope, SqlProbe, execute

#: Reads every item once.
_RUNS = """
    SELECT r.id,
           (r.ready, r.skipped, r.failed)
               <> (coalesce(i.ready, 0), coalesce(i.skipped, 0), coalesce(i.failed, 0))
               OR r.cancelled < coalesce(i.cancelled, 0)
               OR r.total < coalesce(i.items, 0)
               -- of a cancelled run, files that were never looked at have no item
               OR r.finished_at IS NOT NULL
                   AND r.total
                       <> r.ready + r.skipped + r.failed + r.cancelled + coalesce(i.open, 0)
               OR r.state <> 'cancelled' AND r.cancelled > coalesce(i.cancelled, 0)
               AS run_counters,
           (r.finished_at IS NULL) <> (r.state = 'running') AS run_state,
           r.finished_at IS NOT NULL AND i.open > 0 AS run_finished_too_early,
           r.finished_at IS NULL AND coalesce(i.open, 0) = 0 AND coalesce(i.items, 0) >= r.total
               AND r.updated_at < now() - %(lease)s AS run_not_closed,
           r.finished_at IS NULL AND coalesce(i.open, 0) = 0 AND coalesce(i.items, 0) < r.total
               AND r.updated_at < now() - %(abandoned)s AS run_abandoned
    FROM documents_ingestionrun r
    LEFT JOIN (
        SELECT run_id, count(*) AS items,
               count(*) FILTER (WHERE state = 'ready') AS ready,
               count(*) FILTER (WHERE state = 'skipped') AS skipped,
               count(*) FILTER (WHERE state = 'failed') AS failed,
               count(*) FILTER (WHERE state = 'cancelled') AS cancelled,
               count(*) FILTER (WHERE state IN ('waiting', 'parsing', 'embedding')) AS open
        FROM documents_ingestionitem GROUP BY run_id
    ) AS i ON i.run_id = r.id
    WHERE %(collection)s::bigint IS NULL OR r.collection_id = %(collection)s
"""

_ITEMS = """
    SELECT i.id, true AS item_open_for_nothing
    FROM documents_ingestionitem i
    JOIN documents_ingestionrun r ON r.id = i.run_id
    LEFT JOIN documents_document d ON d.id = i.document_id
    WHERE i.state IN ('waiting', 'parsing', 'embedding')
      AND (d.id IS NULL OR d.status NOT IN ('queued', 'processing'))
      AND (%(collection)s::bigint IS NULL OR r.collection_id = %(collection)s)
"""

_RECOUNT = """
    UPDATE documents_ingestionrun r
    SET ready = i.ready, skipped = i.skipped, failed = i.failed,
        cancelled = i.cancelled + i.never_begun,
        total = CASE WHEN r.finished_at IS NULL THEN greatest(r.total, i.items)
                     ELSE i.settled + i.never_begun END
    FROM (
        SELECT r.id, count(i.id) AS items,
               count(*) FILTER (
                   WHERE i.state IN ('ready', 'skipped', 'failed', 'cancelled')
               ) AS settled,
               CASE WHEN r.state = 'cancelled' THEN greatest(r.total - count(i.id), 0)
                    ELSE 0 END AS never_begun,
               count(*) FILTER (WHERE i.state = 'ready') AS ready,
               count(*) FILTER (WHERE i.state = 'skipped') AS skipped,
               count(*) FILTER (WHERE i.state = 'failed') AS failed,
               count(*) FILTER (WHERE i.state = 'cancelled') AS cancelled
        FROM documents_ingestionrun r LEFT JOIN documents_ingestionitem i ON i.run_id = r.id
        WHERE %(collection)s::bigint IS NULL OR r.collection_id = %(collection)s
        GROUP BY r.id
    ) AS i
    WHERE i.id = r.id
      AND ((r.ready, r.skipped, r.failed, r.cancelled)
               <> (i.ready, i.skipped, i.failed, i.cancelled + i.never_begun)
           OR r.total < i.items
           OR r.finished_at IS NOT NULL AND r.total <> i.settled + i.never_begun)
"""


def _recount(scope: Scope) -> int:
    return execute(_RECOUNT, scope)


def _ids_with(name: str, scope: Scope) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM ({_RUNS}) AS run WHERE {name}", scope.parameters)  # noqa: S608
        return [run_id for (run_id,) in cursor.fetchall()]


def _close(scope: Scope) -> int:
    ids = _ids_with("run_not_closed", scope)
    for run_id in ids:
        settling.finish_run(run_id)
    return len(ids)


def _give_up(scope: Scope) -> int:
    """Its command died before it had looked at every file: those it had counted it never named."""
    ids = _ids_with("run_abandoned", scope)
    for run_id in ids:
        _end_abandoned(run_id)
    return len(ids)


@transaction.atomic
def _end_abandoned(run_id: int) -> None:
    run = IngestionRun.objects.select_for_update().get(pk=run_id)
    some = run.ready + run.skipped > 0
    run.total = run.settled
    run.state = IngestionRun.State.PARTIAL if some else IngestionRun.State.FAILED
    run.finished_at = timezone.now()
    run.save(update_fields=["total", "state", "finished_at", "updated_at"])


PROBES = (
    SqlProbe(
        _RUNS,
        (
            Check(
                "run_counters",
                "runs",
                "count otherwise than their items",
                "`validate --fix` counts them anew.",
                _recount,
            ),
            Check(
                "run_state",
                "runs",
                "have an end and are running, or the other way round",
                "Report it, with what happened to the worker.",
            ),
            Check(
                "run_finished_too_early",
                "runs",
                "are finished and have items that are not",
                "Their documents go on; ingest those that fail again.",
            ),
            Check(
                "run_not_closed",
                "runs",
                "have done everything and are still open",
                "Is a scheduler running? `validate --fix` ends them.",
                _close,
            ),
            Check(
                "run_abandoned",
                "runs",
                "were left by a command that died",
                "Run it again: what is ready is skipped. `validate --fix` ends them.",
                _give_up,
            ),
        ),
    ),
    SqlProbe(
        _ITEMS,
        (
            Check(
                "item_open_for_nothing",
                "items",
                "wait for a document that is finished or gone",
                "Ingest the files again.",
            ),
        ),
    ),
)
