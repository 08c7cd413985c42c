"""Extraction of a collection: its progress, and repeating it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated, Any

from django.db import connection, transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from documents.models import Collection
from graph.extraction import extractors, worker
from graph.extraction.queue import QUEUE
from graph.models import Extraction
from graph.tasks import enqueue_extraction

State = Extraction.State

# Documents that came while the graph was off have no row yet.
_REQUEUE_SQL = """
    INSERT INTO graph_extraction (
        workspace_id, collection_id, document_id, state, recipe, attempts, outages, error,
        due_at, mentions, relations)
    SELECT document.workspace_id, document.collection_id, document.id,
           'waiting', '', 0, 0, '', now(), 0, 0
    FROM documents_document AS document
    LEFT JOIN graph_extraction AS known ON known.document_id = document.id
    WHERE document.collection_id = %(collection)s AND document.chunk_count > 0
      AND (NOT %(stale)s OR known.id IS NULL OR known.state = 'done' AND known.recipe <> %(recipe)s)
    ORDER BY document.id
    ON CONFLICT ON CONSTRAINT graph_extraction_document_id_key DO UPDATE
    SET state = 'waiting', attempts = 0, outages = 0, error = '', due_at = now(), token = NULL,
        leased_until = NULL
    RETURNING document_id
"""


@dataclass(frozen=True, slots=True)
class ExtractionState:
    """Number of documents by state, and totals of results."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    dead: Annotated[int, "Given up after some attempts."] = 0
    stale: Annotated[int, "Of those that are done: in another way than they would be now."] = 0
    mentions: Annotated[int, "Pairs of a passage and a node."] = 0
    relations: Annotated[int, "Number of extracted relations."] = 0


def extraction_state(*, collection: Collection) -> ExtractionState:
    """Progress of extraction in the collection."""
    recipe = extractors.recipe_of(collection.graph, workspace_id=collection.workspace_id)
    found = Extraction.objects.filter(collection=collection).aggregate(
        **{state.value: Count("pk", filter=Q(state=state)) for state in State},
        stale=Count("pk", filter=Q(state=State.DONE) & ~Q(recipe=recipe)),
        mentions=Sum("mentions"),
        relations=Sum("relations"),
    )
    return ExtractionState(**{name: value or 0 for name, value in found.items()})


def reextract_collection(*, collection: Collection, only_stale: bool = False) -> int:
    """Queues all documents, or only those never extracted or by another recipe; returns how many.

    Earlier results stay until then. 0 where the graph is off.
    """
    if collection.graph == Collection.Graph.OFF:
        return 0
    recipe = extractors.recipe_of(collection.graph, workspace_id=collection.workspace_id)
    values: dict[str, Any] = {"collection": collection.pk, "stale": only_stale, "recipe": recipe}
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_REQUEUE_SQL, values)
            ids = [document_id for (document_id,) in cursor.fetchall()]
        transaction.on_commit(partial(enqueue_extraction, ids))
    return len(ids)


def retry_extractions(*, extraction_ids: Sequence[int]) -> int:
    """Requeues dead extractions; returns how many."""
    with transaction.atomic():
        ids = QUEUE.requeue(extraction_ids)
        transaction.on_commit(partial(enqueue_extraction, ids))
    return len(ids)


def extract_waiting(
    *, collection: Collection, on_progress: Callable[[int], Any] = lambda read: None
) -> int:
    """Extracts due documents of the collection in this process; returns how many.

    `on_progress` is called with the number so far.
    """
    read = 0
    rows = Extraction.objects.filter(collection=collection, due_at__lte=timezone.now())
    waiting = rows.filter(state__in=[State.WAITING, State.RUNNING]).order_by("document_id")
    ids = list(waiting.values_list("document_id", flat=True))
    for start in range(0, len(ids), worker.MAX_BATCH_DOCUMENTS):
        outcome = worker.extract(ids[start : start + worker.MAX_BATCH_DOCUMENTS])
        read += outcome.read
        on_progress(read)
        for document_id in outcome.for_model:
            read += worker.extract_with_model(document_id).read
            on_progress(read)
    return read
