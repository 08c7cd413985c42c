"""Celery tasks: they take ids, call the stages of ingestion, and may be delivered twice."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

from celery.signals import worker_ready
from django.conf import settings
from django.core.cache import cache
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from django.utils.translation import gettext, gettext_noop
from kombu.exceptions import OperationalError

from common import features
from common.celery import app, send_or_wait
from common.errors import RagsiteError
from common.leases import heartbeat_expired, lease_expired
from common.shards import current_shard
from documents import lexical_index
from documents.ingestion import jobs, pipeline, stored_files, token_encoding, vector_indexes
from documents.ingestion import reembed as ingestion_reembed
from documents.ingestion.containers import UNPACK_LATER
from documents.ingestion.reembed import FIRST_CURSOR, Cursor, reindex_chunks
from documents.models import (
    Chunk,
    Document,
    EmbeddingSpace,
    IngestionRun,
    Reembedding,
    StagedDocument,
)
from inference.interfaces import InferenceError

logger = logging.getLogger(__name__)

UNPACK_TASK = "documents.archive_tasks.unpack_container"

#: Documents a message carries: enough for full batches, few enough to share among workers.
BATCH = 32


class QueueUnavailable(RagsiteError):
    """The message broker does not answer, and recovery would not send the task later."""

    code = "queue_away"
    status = 503


def enqueue(document_ids: Sequence[int], *, batch: int = BATCH) -> None:
    """Send documents to the `ingest` queue after the commit. If the broker is down nothing is lost:
    recovery finds the rows."""
    for part in _batches(document_ids, batch):
        transaction.on_commit(partial(send_or_wait, ingest_documents, part))


def _batches(document_ids: Sequence[int], size: int = BATCH) -> list[list[int]]:
    return [list(document_ids[start : start + size]) for start in range(0, len(document_ids), size)]


@app.task(bind=True, max_retries=None)
def ingest_documents(self: Any, document_ids: list[int]) -> None:
    """Parse and chunk, then hand over to the `embed` queue.

    Chunking counts tokens with the model, whose host may be down.
    """
    rows = Document.objects.filter(id__in=document_ids, status__in=jobs.UNFINISHED_STATUSES)
    containers = rows.filter(**{f"declared__{UNPACK_LATER}": True})
    for document_id in containers.values_list("id", flat=True):
        # By its name, because it is of a layer above this one.
        app.send_task(UNPACK_TASK, args=(document_id,), queue="ingest")
        document_ids.remove(document_id)
    with _retry_while_model_unavailable(self, document_ids):
        staged = pipeline.parse_documents(
            document_ids, defer=partial(_continue_later, ingest_documents)
        )
        bare = pipeline.without_vectors(staged)
        if bare:  # nothing to wait for
            pipeline.embed_documents(bare)
        if with_vectors := sorted({*staged} - {*bare}):
            embed_documents.delay(with_vectors)


def _continue_later(task: Any, document_id: int) -> None:
    """Have the task go on with this document when nothing else waits."""
    send_or_wait(task, [document_id], priority=jobs.LOWEST_PRIORITY)


@app.task(bind=True, max_retries=None)
def embed_documents(self: Any, document_ids: list[int]) -> None:
    """Embed staged documents and load them into the chunk table."""
    with _retry_while_model_unavailable(self, document_ids):
        pipeline.embed_documents(document_ids, defer=partial(_continue_later, embed_documents))
    enqueue_encoding()


#: Seconds after which a message to encode counts as lost.
ENCODING_MESSAGE_SECONDS = 600


def enqueue_encoding() -> None:
    """Have a batch of passages encoded token by token, after all other work of the queue. One
    message waits at a time; a lost one is sent again by recovery."""
    if not features.is_on("vectors") or not token_encoding.has_work():
        return
    key = f"encode-passages:{current_shard()}"
    try:
        is_first = cache.add(key, True, ENCODING_MESSAGE_SECONDS)
    except Exception as error:  # each cache backend has errors of its own
        logger.warning("passages wait to be encoded, the cache does not answer: %s", error)
        return
    if is_first and not send_or_wait(encode_passages, priority=jobs.LOWEST_PRIORITY):
        cache.delete(key)


@app.task
def encode_passages() -> int:
    """Encode one batch, then send a message for the next; returns how many passages."""
    cache.delete(f"encode-passages:{current_shard()}")
    if not features.is_on("vectors"):
        return 0
    done = token_encoding.encode_batch()
    if done is not None:
        enqueue_encoding()
    return done or 0


@app.task
def recover_encoding() -> None:
    """Have passages encoded that were left, such as those of a former model."""
    enqueue_encoding()


def enqueue_reindexing(document_ids: Sequence[int]) -> None:
    """Have these documents embedded again, after the commit. Raises QueueUnavailable there."""

    def send(part: list[int]) -> None:
        try:
            reindex_documents.delay(part)
        except OperationalError as error:
            raise QueueUnavailable(
                gettext(
                    "The queue does not respond, so no worker was notified. Start Redis"
                    " or Valkey, and try again."
                )
            ) from error

    for part in _batches(document_ids):
        transaction.on_commit(partial(send, part))


@app.task(bind=True, max_retries=None)
def reindex_documents(self: Any, document_ids: list[int]) -> None:
    """Embed the chunks of documents again. While the model is down they keep their vectors."""
    if not features.is_on("vectors"):
        return
    rows = Chunk.objects.filter(document__in=document_ids, collection__vectors=True)
    chunks = rows.order_by("pk")
    try:
        reindex_chunks(chunk_ids=list(chunks.values_list("pk", flat=True)))
    except InferenceError as error:
        delay = min(300, 5 * 2**self.request.retries)
        raise self.retry(exc=error, countdown=delay) from error


@contextmanager
def _retry_while_model_unavailable(task: Any, document_ids: list[int]) -> Iterator[None]:
    """Retry the task at growing intervals while the model is down; the documents say why they
    wait."""
    try:
        yield
    except InferenceError as error:
        jobs.report_outage(document_ids, error)
        delay = min(300, 5 * 2**task.request.retries)
        raise task.retry(exc=error, countdown=delay) from error


@app.task
def recover_documents() -> int:
    """Send documents again whose worker died or whose message was lost; returns how many.

    Rows are the truth, messages only a hint: a second message for a document that is claimed or
    ready has no effect.
    """
    lost = list(
        Document.objects.filter(status__in=jobs.UNFINISHED_STATUSES)
        .filter(
            lease_expired("claimed_until", lease=jobs.lease_duration())
            | Q(claimed_until=None) & heartbeat_expired("updated_at", lease=jobs.lease_duration())
        )
        .order_by("id")
        .values_list("id", flat=True)[: 100 * BATCH]
    )
    # Not again before another lease has passed.
    Document.objects.filter(id__in=lost).update(
        claimed_by=None, claimed_until=None, updated_at=Now()
    )
    staged = set(
        StagedDocument.objects.filter(document_id__in=lost).values_list("document_id", flat=True)
    )
    stored = set(Document.objects.filter(id__in=lost).exclude(file="").values_list("id", flat=True))
    bare = pipeline.without_vectors(staged)
    if bare:
        pipeline.embed_documents(bare)
    for task, ids in ((embed_documents, staged - {*bare}), (ingest_documents, stored - staged)):
        for part in _batches(sorted(ids)):
            task.delay(part)
    # Fail documents of a command that died: only the command can read their files.
    document_ids = sorted(set(lost) - staged - stored)
    if document_ids:
        jobs.fail_documents(
            document_ids,
            code="interrupted",
            message=gettext_noop(
                "The command that ingested it was stopped. Run it again to ingest the rest."
            ),
        )
        jobs.finish_runs(document_ids)
    # End runs whose process died before it ended them: all settled, or cancelled. Only those
    # without a change for a lease, because a command that looks for more files has no open item
    # either.
    silent = IngestionRun.objects.filter(
        heartbeat_expired("updated_at", lease=jobs.lease_duration()), finished_at=None
    )
    for run_id in silent.exclude(cancel_requested_at=None).values_list("id", flat=True):
        jobs.carry_out_cancellation(run_id)
    for run_id in silent.filter(items__isnull=False).values_list("id", flat=True).distinct():
        jobs.finish_run(run_id)
    return len(lost)


@app.task
def index_pending_chunks() -> int:
    """Move pending chunks into the lexical index and merge its segments; returns how many were
    moved."""
    return lexical_index.index_all_pending()


@app.task
def sweep_files() -> int:
    """Delete stored files without document that are older than an hour; returns how many."""
    return stored_files.sweep_orphaned_files()


@worker_ready.connect
def recover_at_start(sender: Any = None, **kwargs: Any) -> None:
    """A starting worker may replace one that died: recover now, and after its leases have
    expired."""
    recover_documents.delay()
    recover_documents.apply_async(countdown=settings.INGESTION_LEASE_SECONDS + 1)


def enqueue_reembedding(row: Reembedding, token: UUID, cursor: Cursor = FIRST_CURSOR) -> None:
    """Send the next batch of a re-embedding. Without a broker it waits for recovery."""
    send_or_wait(reembed, row.pk, str(token), *cursor)


@app.task
def reembed(row_id: int, token: str, after: int, size: int) -> None:
    """Move one batch, then send a message for the next, so that uploads are embedded in between."""
    row = Reembedding.objects.select_related("target").filter(pk=row_id, token=token).first()
    if row is None:
        return
    try:
        if after == 0 and ingestion_reembed.builds_index_first(row):
            ingestion_reembed.build_target_index(row, token=UUID(token))
        following = ingestion_reembed.move_batch(row, token=UUID(token), cursor=(after, size))
    except ingestion_reembed.TakenOver as error:
        logger.info("%s", error)
    except InferenceError as error:
        # The row stays running and its sign of life grows old: recovery tries again.
        logger.warning("re-embedding waits for its model: %s", error)
        Reembedding.objects.filter(pk=row_id, token=token).update(error=str(error))
    else:
        if following is not None:
            enqueue_reembedding(row, UUID(token), following)


@app.task
def build_space_index(space_id: int) -> None:
    """Build a space's index, on the default queue."""
    for space in EmbeddingSpace.objects.filter(pk=space_id):
        vector_indexes.build_index(space)


@app.task
def recover_reembeddings() -> int:
    """Resume re-embeddings without progress for a lease; returns how many."""
    silent = Reembedding.objects.filter(
        heartbeat_expired("seen_at", lease=jobs.lease_duration()), state=Reembedding.State.RUNNING
    )
    rows = list(silent) if features.is_on("vectors") else []
    for row in rows:
        enqueue_reembedding(row, ingestion_reembed.take_over(row))
    return len(rows)
