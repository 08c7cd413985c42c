"""Reading documents for the graph: how far it is, and reading again."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from django.db import connection, transaction
from django.db.models import Count, Q, Sum
from django.utils import timezone

from documents.models import Collection
from graph.extraction import queue, readers, working
from graph.models import Extraction
from graph.tasks import enqueue_extraction

State = Extraction.State

# Documents that came while the graph was off have no row yet.
_AGAIN = """
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
    """Documents of a collection by how far reading them is, and what was found. `stale` ones were
    read by another recipe than would be used now."""

    waiting: int = 0
    running: int = 0
    done: int = 0
    dead: int = 0
    stale: int = 0
    mentions: int = 0
    relations: int = 0


def extraction_state(*, collection: Collection) -> ExtractionState:
    """How far reading the collection is."""
    recipe = readers.recipe_of(collection.graph)
    found = Extraction.objects.filter(collection=collection).aggregate(
        **{state.value: Count("pk", filter=Q(state=state)) for state in State},
        stale=Count("pk", filter=Q(state=State.DONE) & ~Q(recipe=recipe)),
        mentions=Sum("mentions"),
        relations=Sum("relations"),
    )
    return ExtractionState(**{name: value or 0 for name, value in found.items()})


def reextract_collection(*, collection: Collection, only_stale: bool = False) -> int:
    """Have all documents of the collection read again, or only those that were never read or by
    another recipe; how many. What is known of them stays until then. None where the graph is off.
    """
    if collection.graph == Collection.Graph.OFF:
        return 0
    recipe = readers.recipe_of(collection.graph)
    values: dict[str, Any] = {"collection": collection.pk, "stale": only_stale, "recipe": recipe}
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(_AGAIN, values)
            ids = [document_id for (document_id,) in cursor.fetchall()]
        transaction.on_commit(partial(enqueue_extraction, ids))
    return len(ids)


def retry_extractions(*, extraction_ids: Sequence[int]) -> int:
    """Try documents again that were given up, as if for the first time; how many were."""
    with transaction.atomic():
        ids = queue.revive(extraction_ids)
        transaction.on_commit(partial(enqueue_extraction, ids))
    return len(ids)


def extract_waiting(
    *, collection: Collection, on_progress: Callable[[int], Any] = lambda read: None
) -> int:
    """Read in this process what of the collection is due; how many documents were read.

    `on_progress` is called with how many were read so far.
    """
    read = 0
    for ids in _parts(collection):
        for outcome in _outcomes(ids):
            read += outcome.read
            on_progress(read)
    return read


def _parts(collection: Collection) -> Iterable[list[int]]:
    """What is due now, in parts; what comes back later is not taken twice."""
    rows = Extraction.objects.filter(collection=collection, due_at__lte=timezone.now())
    waiting = rows.filter(state__in=[State.WAITING, State.RUNNING]).order_by("document_id")
    ids = list(waiting.values_list("document_id", flat=True))
    for start in range(0, len(ids), working.BATCH_DOCUMENTS):
        yield ids[start : start + working.BATCH_DOCUMENTS]


def _outcomes(document_ids: list[int]) -> Iterable[working.Outcome]:
    outcome = working.extract(document_ids)
    yield outcome
    for document_id in outcome.for_model:
        yield working.extract_with_model(document_id)
