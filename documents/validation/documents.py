"""Documents against their chunks, their claims and one another."""

from documents.ingestion.claims import UNFINISHED
from documents.models import Document, StagedDocument
from documents.tasks import recover_documents
from documents.validation.base import Check, Scope, SqlProbe, execute

#: Reads every chunk's row once, without its text and vector.
_AGAINST_CHUNKS = """
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

_RECOUNT = """
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
_STATES = """
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

_CURRENT = """
    SELECT max(id) AS id, true AS document_current_versions
    FROM documents_document
    WHERE is_current AND (%(collection)s::bigint IS NULL OR collection_id = %(collection)s)
    GROUP BY collection_id, key HAVING count(*) > 1
"""

_STAGED = """
    SELECT d.id, true AS staged_not_waiting
    FROM documents_stageddocument s JOIN documents_document d ON d.id = s.document_id
    WHERE d.status NOT IN ('queued', 'processing')
      AND (%(collection)s::bigint IS NULL OR d.collection_id = %(collection)s)
"""


def _recount(scope: Scope) -> int:
    return execute(_RECOUNT, scope)


def _requeue(scope: Scope) -> int:
    """In batches, each of which is not looked at again before a lease has passed."""
    waiting = Document.objects.filter(status__in=UNFINISHED).count()
    sent = 0
    while sent < waiting and (batch := recover_documents()):
        sent += batch
    return sent


def _unstage(scope: Scope) -> int:
    rows = StagedDocument.objects.exclude(document__status__in=UNFINISHED)
    if scope.collection_id is not None:
        rows = rows.filter(document__collection=scope.collection_id)
    return rows.delete()[0]


PROBES = (
    SqlProbe(
        _AGAINST_CHUNKS,
        (
            Check(
                "document_counts",
                "documents",
                "say another number of chunks or tokens than they have",
                "`validate --fix` counts them anew.",
                _recount,
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
        _STATES,
        (
            Check(
                "document_stuck",
                "documents",
                "wait, and nobody has taken them for more than a lease",
                "Is a worker running, with the scheduler (`celery -B`, or `manage.py up`)?"
                " `validate --fix` sends them again.",
                _requeue,
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
        _CURRENT,
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
        _STAGED,
        (
            Check(
                "staged_not_waiting",
                "documents",
                "do not wait, and have chunks staged for embedding",
                "`validate --fix` removes what is staged.",
                _unstage,
            ),
        ),
    ),
)
