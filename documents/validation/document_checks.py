"""Checks of documents, runs and stored files: counts, claims, versions, open items, missing
files."""

from functools import partial

from django.db import connection, transaction
from django.utils import timezone

from common.checks import COLLATION_CURE, changed_collation
from documents.ingestion import jobs
from documents.ingestion.jobs import UNFINISHED_STATUSES
from documents.ingestion.stored_files import orphaned_files, remove_orphaned_files, stored_files
from documents.models import Document, IngestionRun
from documents.tasks import recover_documents
from documents.validation.base import Check, Scope, SqlProbe, execute, fix_each

#: Reads every chunk's row once, without its text and vector.
_DOCUMENT_COUNTS = """
    SELECT d.id,
           d.chunk_count <> coalesce(c.chunks, 0)
               OR d.token_count <> coalesce(c.tokens, 0) AS document_counts,
           d.status = 'ready' AND c.chunks IS NULL
               AND coalesce(original.chunk_count, 0) = 0 AS ready_without_chunks,
           c.first_ordinal <> 0 OR c.last_ordinal <> c.chunks - 1 AS chunk_ordinals
    FROM documents_document d
    LEFT JOIN (
        SELECT document_id, count(*) AS chunks, sum(token_count) AS tokens,
               min(ordinal) AS first_ordinal, max(ordinal) AS last_ordinal
        FROM documents_chunk
        WHERE %(collection)s::bigint IS NULL OR collection_id = %(collection)s
        GROUP BY document_id
    ) AS c ON c.document_id = d.id
    -- stored once: its text is that of another document
    LEFT JOIN documents_document original ON original.id = d.duplicate_of_id
    WHERE %(collection)s::bigint IS NULL OR d.collection_id = %(collection)s
"""

_RECOUNT_DOCUMENTS = """
    UPDATE documents_document d
    SET chunk_count = held.chunks, token_count = held.tokens, updated_at = now()
    FROM (
        SELECT d.id, count(c.id) AS chunks, coalesce(sum(c.token_count), 0) AS tokens
        FROM documents_document d LEFT JOIN documents_chunk c ON c.document_id = d.id
        WHERE %(collection)s::bigint IS NULL OR d.collection_id = %(collection)s
        GROUP BY d.id
    ) AS held
    WHERE held.id = d.id AND (d.chunk_count, d.token_count) <> (held.chunks, held.tokens)
"""

#: Recovery looks twice a lease: what it should have seen a lease ago it does not see.
_DOCUMENT_STATES = """
    SELECT d.id,
           d.status IN ('queued', 'processing')
               AND coalesce(d.claimed_until, d.updated_at + %(lease)s) < now() - %(lease)s
               AS document_stuck,
           d.status NOT IN ('queued', 'processing') AND d.claimed_by IS NOT NULL
               AS document_claim_left,
           original.id IS NOT NULL
               AND (original.id = d.id OR original.collection_id <> d.collection_id)
               AS document_duplicate_of
    FROM documents_document d
    LEFT JOIN documents_document original ON original.id = d.duplicate_of_id
    WHERE %(collection)s::bigint IS NULL OR d.collection_id = %(collection)s
"""

_CURRENT_VERSIONS = """
    SELECT max(id) AS id, true AS document_current_versions
    FROM documents_document
    WHERE is_current AND (%(collection)s::bigint IS NULL OR collection_id = %(collection)s)
    GROUP BY collection_id, key HAVING count(*) > 1
"""

_STAGED_DOCUMENTS = """
    SELECT d.id, true AS staged_not_waiting
    FROM documents_stageddocument s JOIN documents_document d ON d.id = s.document_id
    WHERE d.status NOT IN ('queued', 'processing')
      AND (%(collection)s::bigint IS NULL OR d.collection_id = %(collection)s)
"""


_DELETE_STAGED = """
    DELETE FROM documents_stageddocument s USING documents_document d
    WHERE d.id = s.document_id AND d.status NOT IN ('queued', 'processing')
      AND (%(collection)s::bigint IS NULL OR d.collection_id = %(collection)s)
"""


def _requeue_stuck(scope: Scope) -> int:
    """In batches; recovery does not see these documents again for a lease."""
    waiting = Document.objects.filter(status__in=UNFINISHED_STATUSES).count()
    sent = 0
    while sent < waiting and (batch := recover_documents()):
        sent += batch
    return sent


DOCUMENT_PROBES = (
    SqlProbe(
        _DOCUMENT_COUNTS,
        (
            Check(
                "document_counts",
                "documents",
                "say another number of chunks or tokens than they have",
                "`validate --fix` counts them anew.",
                partial(execute, _RECOUNT_DOCUMENTS),
            ),
            Check(
                "ready_without_chunks",
                "documents",
                "are ready and have no chunk",
                "Ingest them again with `--overwrite`, or delete them.",
            ),
            Check(
                "chunk_ordinals",
                "documents",
                "have chunks that are not numbered 0, 1, 2 …: one is missing",
                "Ingest them again with `--overwrite`.",
            ),
        ),
    ),
    SqlProbe(
        _DOCUMENT_STATES,
        (
            Check(
                "document_stuck",
                "documents",
                "wait, and nobody has taken them for more than a lease",
                "Is a worker running, with the scheduler (`celery -B`, or `manage.py up`)?"
                " `validate --fix` sends them again.",
                _requeue_stuck,
            ),
            Check(
                "document_claim_left",
                "documents",
                "are finished and still claimed by a worker",
                "The claim ends with its lease; if it does not, report it.",
            ),
            Check(
                "document_duplicate_of",
                "documents",
                "are said to be a duplicate of themselves, or of one in another collection",
                "Ingest them again with `--overwrite`.",
            ),
        ),
    ),
    SqlProbe(
        _CURRENT_VERSIONS,
        (
            Check(
                "document_current_versions",
                "documents",
                "are not the only current version of their key",
                "Delete all but one: the constraint document_current_key_unique is missing.",
            ),
        ),
    ),
    SqlProbe(
        _STAGED_DOCUMENTS,
        (
            Check(
                "staged_not_waiting",
                "documents",
                "do not wait, and have chunks staged for embedding",
                "`validate --fix` removes what is staged.",
                partial(execute, _DELETE_STAGED),
            ),
        ),
    ),
)


#: Reads every item once.
_RUN_STATES = """
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

_OPEN_ITEMS = """
    SELECT i.id, true AS item_open_for_nothing
    FROM documents_ingestionitem i
    JOIN documents_ingestionrun r ON r.id = i.run_id
    LEFT JOIN documents_document d ON d.id = i.document_id
    WHERE i.state IN ('waiting', 'parsing', 'embedding')
      AND (d.id IS NULL OR d.status NOT IN ('queued', 'processing'))
      AND (%(collection)s::bigint IS NULL OR r.collection_id = %(collection)s)
"""

_RECOUNT_RUNS = """
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


def _runs_with(name: str, scope: Scope) -> list[int]:
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT id FROM ({_RUN_STATES}) AS run WHERE {name}", scope.parameters)  # noqa: S608
        return [run_id for (run_id,) in cursor.fetchall()]


@transaction.atomic
def _end_abandoned_run(run_id: int) -> None:
    """The command died before it had looked at every file: counted files without item stay
    unknown."""
    run = IngestionRun.objects.select_for_update().get(pk=run_id)
    some = run.ready + run.skipped > 0
    run.total = run.settled
    run.state = IngestionRun.State.PARTIAL if some else IngestionRun.State.FAILED
    run.finished_at = timezone.now()
    run.save(update_fields=["total", "state", "finished_at", "updated_at"])


def _missing_files(scope: Scope) -> list[int]:
    storage = Document._meta.get_field("file").storage
    documents = Document.objects.exclude(file="")
    if scope.collection_id is not None:
        documents = documents.filter(collection=scope.collection_id)
    stored = set(stored_files())
    rows = documents.order_by("id").values_list("id", "file").iterator(chunk_size=10_000)
    suspects = {pk: name for pk, name in rows if name not in stored}
    # Files may have been replaced or added while the folder was read.
    return [
        pk
        for pk, name in suspects.items()
        if not storage.exists(name) and documents.filter(pk=pk, file=name).exists()
    ]


def _changed_collations(scope: Scope) -> list[str]:
    name = changed_collation() if scope.collection_id is None else ""
    return [name] if name else []


RUN_AND_FILE_PROBES: tuple[Check | SqlProbe, ...] = (
    Check(
        "collation_version",
        "databases",
        "are sorted by another version of their collation than they were made with",
        COLLATION_CURE,
        find=_changed_collations,
    ),
    SqlProbe(
        _RUN_STATES,
        (
            Check(
                "run_counters",
                "runs",
                "count otherwise than their items",
                "`validate --fix` counts them anew.",
                partial(execute, _RECOUNT_RUNS),
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
                fix_each(partial(_runs_with, "run_not_closed"), jobs.finish_run),
            ),
            Check(
                "run_abandoned",
                "runs",
                "were left by a command that died",
                "Run it again: what is ready is skipped. `validate --fix` ends them.",
                fix_each(partial(_runs_with, "run_abandoned"), _end_abandoned_run),
            ),
        ),
    ),
    SqlProbe(
        _OPEN_ITEMS,
        (
            Check(
                "item_open_for_nothing",
                "items",
                "wait for a document that is finished or gone",
                "Ingest the files again.",
            ),
        ),
    ),
    Check(
        "file_missing",
        "documents",
        "have a stored file that is not there; their text is",
        "Restore the media folder from its backup, or upload them again.",
        find=_missing_files,
    ),
    Check(
        "file_unknown",
        "stored files",
        "belong to no document",
        "The scheduler removes them within the hour, `validate --fix` at once.",
        lambda scope: remove_orphaned_files(),
        # A file does not say of which collection it is.
        lambda scope: orphaned_files() if scope.collection_id is None else [],
    ),
)
