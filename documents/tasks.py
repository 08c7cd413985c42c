"""Celery tasks: they take ids, translate to the stages, and may be delivered twice."""

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any
from uuid import UUID

from celery.signals import worker_ready
from django.conf import settings
from django.db import transaction
from django.db.models import Q
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from common.celery import app
from common.clock import is_over, is_silent
from common.errors import RagsiteError
from documents import lexical_index
from documents.ingestion import (
    cancelling,
    claims,
    indexes,
    reembedding,
    runs,
    settling,
    stages,
    unnamed,
)
from documents.ingestion.reembedding import Cursor
from documents.ingestion.reindexing import reindex_chunks
from documents.models import (
    Chunk,
    Document,
    EmbeddingSpace,
    IngestionRun,
    Reembedding,
    StagedDocument,
)
from inference.base import InferenceError

logger = logging.getLogger(__name__)

#: Documents a message carries: enough for full batches, few enough to share among workers.
BATCH = 32

START = Cursor()


class QueueAway(RagsiteError):
    """The workers cannot be told, and nothing would tell them later."""

    code = "queue_away"
    status = 503


def enqueue(document_ids: Sequence[int]) -> None:
    """Send documents to the `ingest` queue once the current transaction has committed."""
    for start in range(0, len(document_ids), BATCH):
        part = list(document_ids[start : start + BATCH])
        transaction.on_commit(partial(_hurry, part))


def _hurry(document_ids: list[int]) -> None:
    """Tell the workers. A broker that is down loses nothing: recovery finds the rows."""
    try:
        ingest_documents.delay(document_ids)
    except OperationalError as error:
        logger.warning("the broker does not answer, the documents wait for it: %s", error)


@app.task(bind=True, max_retries=None)
def ingest_documents(self: Any, document_ids: list[int]) -> None:
    """Parse and cut, then hand over to the `embed` queue.

    Cutting asks the model how it counts tokens, and its host may be down.
    """
    with _waiting_for_the_model(self, document_ids):
        staged = stages.parse_documents(document_ids)
        if staged:
            embed_documents.delay(staged)


@app.task(bind=True, max_retries=None)
def embed_documents(self: Any, document_ids: list[int]) -> None:
    """Embed and load."""
    with _waiting_for_the_model(self, document_ids):
        stages.embed_documents(document_ids)


def enqueue_reindexing(document_ids: Sequence[int]) -> None:
    """Have these documents embedded anew, once the current transaction has committed."""
    for start in range(0, len(document_ids), BATCH):
        part = list(document_ids[start : start + BATCH])
        transaction.on_commit(partial(_ask_for_vectors, part))


def _ask_for_vectors(document_ids: list[int]) -> None:
    try:
        reindex_documents.delay(document_ids)
    except OperationalError as error:
        raise QueueAway(
            "The queue does not answer, so no worker was told. Start Redis or Valkey, and try"
            " again."
        ) from error


@app.task(bind=True, max_retries=None)
def reindex_documents(self: Any, document_ids: list[int]) -> None:
    """Embed the chunks of documents anew. While the model is down they keep their vectors."""
    chunks = Chunk.objects.filter(document__in=document_ids).order_by("pk")
    try:
        reindex_chunks(chunk_ids=list(chunks.values_list("pk", flat=True)))
    except InferenceError as error:
        delay = min(300, 5 * 2**self.request.retries)
        raise self.retry(exc=error, countdown=delay) from error


@contextmanager
def _waiting_for_the_model(task: Any, document_ids: list[int]) -> Iterator[None]:
    """Try a model that is down again, at growing intervals; the documents say why they wait."""
    try:
        yield
    except InferenceError as error:
        settling.report_outage(document_ids, error)
        delay = min(300, 5 * 2**task.request.retries)
        raise task.retry(exc=error, countdown=delay) from error


@app.task
def recover_documents() -> int:
    """Send documents anew whose worker died, or whose message was lost; returns how many.

    The rows are the truth, messages only hurry them along: a second message for a document that
    somebody has, or that is ready, does nothing.
    """
    lost = list(
        Document.objects.filter(status__in=claims.UNFINISHED)
        .filter(
            is_over("claimed_until", lease=claims.lease())
            | Q(claimed_until=None) & is_silent("updated_at", lease=claims.lease())
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
    _send(embed_documents, sorted(staged))
    _send(ingest_documents, sorted(stored - staged))
    _interrupt(sorted(set(lost) - staged - stored))
    _close_runs()
    return len(lost)


def _send(task: Any, document_ids: Sequence[int]) -> None:
    for start in range(0, len(document_ids), BATCH):
        task.delay(list(document_ids[start : start + BATCH]))


def _interrupt(document_ids: Sequence[int]) -> None:
    """Documents of a command that died: their files are where only the command can read them."""
    if document_ids:
        settling.fail(
            document_ids,
            code="interrupted",
            message="The command that ingested it was stopped. Run it again: what is ready is"
            " skipped.",
        )
        for run_id in runs.open_runs(document_ids):
            settling.finish_run(run_id)


def _close_runs() -> None:
    """End runs that somebody died over before it could say so: all settled, or cancelled.

    Those that nothing has happened to for a lease: a command that looks for more files has none
    open either.
    """
    silent = IngestionRun.objects.filter(
        is_silent("updated_at", lease=claims.lease()), finished_at=None
    )
    for run_id in silent.exclude(cancel_requested_at=None).values_list("id", flat=True):
        cancelling.carry_out(run_id)
    for run_id in silent.filter(items__isnull=False).values_list("id", flat=True).distinct():
        settling.finish_run(run_id)


@app.task
def index_pending_chunks() -> int:
    """Move pending chunks into the lexical index and merge its segments; how many were moved."""
    return lexical_index.index_all_pending()


@app.task
def sweep_files() -> int:
    """Remove stored files that no document names, an hour later; how many."""
    return unnamed.sweep()


@worker_ready.connect
def recover_at_start(sender: Any = None, **kwargs: Any) -> None:
    """A worker that starts may follow one that died: look now, and when its claims have ended."""
    recover_documents.delay()
    recover_documents.apply_async(countdown=settings.INGESTION_LEASE_SECONDS + 1)


def enqueue_reembedding(row: Reembedding, token: UUID, cursor: Cursor = START) -> None:
    """Send the next batch of a re-embedding. Without a broker it waits for recovery."""
    try:
        reembed.delay(row.pk, str(token), cursor.after, cursor.size)
    except OperationalError as error:
        logger.warning("the broker does not answer, the re-embedding waits for it: %s", error)


@app.task
def reembed(row_id: int, token: str, after: int, size: int) -> None:
    """One batch, then a message for the next: uploads that wait for the model come in between."""
    row = Reembedding.objects.select_related("target").filter(pk=row_id, token=token).first()
    if row is None:
        return
    try:
        if after == 0 and reembedding.builds_index_first(row):
            reembedding.index(row, token=UUID(token))
        following = reembedding.advance(row, token=UUID(token), cursor=Cursor(after, size))
    except reembedding.TakenOver as error:
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
    """Build a space's index, on the queue of everything that is not urgent."""
    for space in EmbeddingSpace.objects.filter(pk=space_id):
        indexes.build_index(space)


@app.task
def recover_reembeddings() -> int:
    """Go on with re-embeddings that nobody has worked on for a lease; returns how many."""
    silent = Reembedding.objects.filter(
        is_silent("seen_at", lease=claims.lease()), state=Reembedding.State.RUNNING
    )
    rows = list(silent)
    for row in rows:
        enqueue_reembedding(row, reembedding.take(row))
    return len(rows)
