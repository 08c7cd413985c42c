"""Vectors for what is remembered: rows wait without one, and are found by their words meanwhile."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from django.db.models import F, Q, QuerySet
from numpy.typing import NDArray

from documents.embedders import embedder_for
from documents.models import EmbeddingSpace
from documents.services import default_space
from inference.base import BackendUnavailable, InferenceError
from inference.vectors import check_vectors
from memory.models import MAX_EMBED_ATTEMPTS, Context, Fact
from memory.querysets import RememberedQuerySet
from memory.scopes import UserScope

logger = logging.getLogger(__name__)

BATCH = 64
#: Rows that failed together are tried alone from here on, so that one of them fails alone.
ALONE_FROM = 2

Row = Context | Fact


def embedded_text(row: Row) -> str:
    """What the model reads of a row."""
    if isinstance(row, Fact):
        return f"{row.key.replace('_', ' ')}: {row.value}"
    return f"{row.user_message}\n{row.assistant_response}".strip()


def embed_waiting(
    *,
    scope: UserScope | None = None,
    contexts: Sequence[int] | None = None,
    facts: Sequence[int] | None = None,
) -> int:
    """Embed what has no vector in the default space, of one user or of these ids or all; how many.

    Rows in a space that is the default no more move. A text that the model refuses is tried
    MAX_EMBED_ATTEMPTS times. Raises BackendUnavailable, which counts against no text.
    """
    space = default_space()
    others = list(EmbeddingSpace.objects.exclude(pk=space.pk).values_list("pk", flat=True))
    everything = contexts is None and facts is None
    done = 0
    for model, ids in ((Context, contexts), (Fact, facts)):
        if everything or ids is not None:
            rows = _waiting(model, others, scope)
            done += _embed_rows(rows if ids is None else rows.filter(pk__in=ids), space)
    return done


def _waiting(
    model: type[Context] | type[Fact], others: Sequence[int], scope: UserScope | None
) -> QuerySet[Any]:
    everybodys: RememberedQuerySet[Any] = model.objects.filter(
        Q(embedding__isnull=True) | Q(space_id__in=others), embed_attempts__lt=MAX_EMBED_ATTEMPTS
    )
    rows = everybodys if scope is None else everybodys.of(scope)
    return rows.defer("embedding", "search_vector")


def _embed_rows(rows: QuerySet[Any], space: EmbeddingSpace) -> int:
    done = 0
    for batch in _batches(rows):
        # Counted before, so that a text which kills the process is not tried for ever.
        ids = [row.pk for row in batch]
        tried = type(batch[0]).objects.filter(pk__in=ids)
        tried.update(embed_attempts=F("embed_attempts") + 1)
        try:
            vectors = _vectors(batch, space)
        except BackendUnavailable:
            tried.update(embed_attempts=F("embed_attempts") - 1)
            raise
        except InferenceError as error:
            logger.warning("%d memories could not be embedded: %s", len(batch), error)
            continue
        done += _store(batch, vectors, space)
    return done


def _batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """Rows that failed before by themselves, the others many at once; each once."""
    last = 0
    while batch := list(
        rows.filter(pk__gt=last, embed_attempts__lt=ALONE_FROM).order_by("pk")[:BATCH]
    ):
        last = batch[-1].pk
        yield batch
    for row in list(rows.filter(embed_attempts__gte=ALONE_FROM).order_by("pk")):
        yield [row]


def _vectors(batch: Sequence[Row], space: EmbeddingSpace) -> NDArray[np.float32]:
    embedder = embedder_for(space)
    vectors = embedder.embed_documents([embedded_text(row) for row in batch])
    return check_vectors(vectors, dimensions=space.dimensions)


def _store(batch: Sequence[Row], vectors: NDArray[np.float32], space: EmbeddingSpace) -> int:
    """Texts of a row never change, so a vector that comes late is still its own."""
    for row, vector in zip(batch, vectors, strict=True):
        row.embedding, row.space, row.embed_attempts = vector, space, 0
    model: Any = type(batch[0])
    stored: int = model.objects.bulk_update(batch, ["embedding", "space", "embed_attempts"])
    return stored
