"""Queue of documents to extract from (`common.queues`): due ones, claims, the next one for the
chat model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.conf import settings
from django.db.models import Q, QuerySet

from common import features
from common.leases import lease_expired
from common.queues import RetryLimits, WorkQueue, lease
from documents.models import Collection
from graph.models import Extraction
from inference.chat_models import chosen_models

QUEUE = WorkQueue(
    Extraction,
    "graph.extraction",
    limits=lambda: RetryLimits(
        attempts=settings.GRAPH_EXTRACTION_MAX_ATTEMPTS,
        outages=settings.GRAPH_EXTRACTION_MAX_OUTAGES,
        first_seconds=settings.GRAPH_EXTRACTION_RETRY_SECONDS,
    ),
    work_id="document_id",
)
State = Extraction.State
#: Most documents per sweep.
SWEEP_SIZE = 5_000


@dataclass(frozen=True, slots=True)
class DueDocument:
    """A document that can be claimed. `tries`: unfinished attempts so far."""

    workspace_id: int
    document_id: int
    collection_id: int
    mode: str
    chunks: int
    tries: int


@dataclass(frozen=True, slots=True)
class Claim:
    """Documents of one collection that a worker has leased."""

    token: UUID
    workspace_id: int
    collection_id: int
    mode: str
    document_ids: tuple[int, ...]


def due_documents(document_ids: Sequence[int]) -> list[DueDocument]:
    """Due and unclaimed ones of the documents, in order of ids."""
    rows = _claimable().filter(document_id__in=document_ids).order_by("document_id")
    columns = (
        "workspace_id",
        "document_id",
        "collection_id",
        "collection__graph",
        "document__chunk_count",
    )
    return [DueDocument(*row) for row in rows.values_list(*columns, "attempts")]


def claim(documents: Sequence[DueDocument]) -> Claim | None:
    """Leases these documents of one collection, except those claimed meanwhile."""
    wanted = [document.document_id for document in documents]
    mode = documents[0].mode
    token, rows = QUEUE.claim(_claimable().filter(document_id__in=wanted, collection__graph=mode))
    if not rows:
        return None
    ids = tuple(sorted(row.document_id for row in rows))
    return Claim(token, rows[0].workspace_id, rows[0].collection_id, mode, ids)


def claimed_rows(claim: Claim) -> QuerySet[Extraction]:
    """Rows that this claim still holds."""
    return Extraction.objects.filter(token=claim.token, document_id__in=claim.document_ids)


def sweep_due() -> list[int]:
    """Documents due for extraction by rules, also of dead workers; not returned again
    within a lease.
    """
    if not features.is_on("graph"):
        return []
    # Those of one collection are read together.
    order_by = "collection_id", "document_id"
    by_rules = Q(collection__graph=Collection.Graph.RULES)
    return QUEUE.sweep(*order_by, limit=SWEEP_SIZE, where=by_rules)


def next_for_model() -> int | None:
    """The next document for a chat model that answers. None if none is due or the maximum is
    running.
    """
    by_model = Extraction.objects.filter(collection__graph=Collection.Graph.LLM)
    read_now = by_model.filter(
        ~lease_expired("leased_until", lease=lease()),
        state=State.RUNNING,
        leased_until__isnull=False,
    )
    if read_now.count() >= settings.GRAPH_EXTRACTION_PARALLEL:
        return None
    rows = _claimable().filter(
        QUEUE.not_paused(chosen_models()), collection__graph=Collection.Graph.LLM
    )
    return rows.order_by("due_at", "pk").values_list("document_id", flat=True).first()


def _claimable() -> QuerySet[Extraction]:
    if not features.is_on("graph"):
        return Extraction.objects.none()
    return QUEUE.claimable().exclude(collection__graph=Collection.Graph.OFF)
