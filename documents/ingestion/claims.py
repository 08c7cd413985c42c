"""Claims: which worker has which document, until when.

A claim is a token on the row and a time. Whoever loads a document must still hold its token
then, so a worker that was taken for dead and comes back changes nothing.
"""

from collections.abc import Collection as Ids
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now

from common.clock import is_over
from documents.ingestion.heartbeat import heartbeat
from documents.models import Document

UNFINISHED = (Document.Status.QUEUED, Document.Status.PROCESSING)


def lease() -> timedelta:
    """How long a claim holds without a sign of life."""
    return timedelta(seconds=settings.INGESTION_LEASE_SECONDS)


def lease_end() -> Any:
    """Until when a claim made now holds; by the database's clock."""
    return Now() + lease()


@transaction.atomic
def claim(document_ids: Ids[int], *, token: UUID | None = None) -> tuple[UUID, list[Document]]:
    """Take those of the documents that wait and that nobody holds, under `token` or a new one.

    Rows that another transaction has locked are being taken by it: they are passed over.
    """
    token = token or uuid4()
    documents = list(
        Document.objects.select_for_update(skip_locked=True, of=("self",))
        .select_related("collection__space")
        .filter(
            Q(claimed_until=None) | Q(claimed_by=None) | is_over("claimed_until", lease=lease())
        )
        .filter(id__in=document_ids, status__in=UNFINISHED)
        .order_by("id")
    )
    Document.objects.filter(id__in=[document.id for document in documents]).update(
        claimed_by=token,
        claimed_until=lease_end(),
        status=Document.Status.PROCESSING,
        attempts=F("attempts") + 1,
        updated_at=Now(),
    )
    return token, documents


def release(token: UUID) -> None:
    """Let go of everything that is still held."""
    with transaction.atomic():
        ids = list(_held(token).select_for_update().order_by("id").values_list("id", flat=True))
        Document.objects.filter(id__in=ids).update(claimed_by=None, claimed_until=None)


@transaction.atomic
def renew(token: UUID) -> None:
    """Hold it for another lease. A row that somebody has locked is being loaded, or taken away."""
    free = _held(token).select_for_update(skip_locked=True)
    ids = list(free.order_by("id").values_list("id", flat=True))
    Document.objects.filter(id__in=ids).update(claimed_until=lease_end())


def _held(token: UUID) -> QuerySet[Document]:
    return Document.objects.filter(claimed_by=token)


@contextmanager
def kept(token: UUID) -> Iterator[None]:
    """Renew the claim while the block works, and let go of it at the end.

    One page of a PDF or one batch of a model may take longer than a lease.
    """
    try:
        with heartbeat(lambda: renew(token)):
            yield
    finally:
        release(token)
