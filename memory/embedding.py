"""Embedding of contexts and facts: until then a row is found by its words only."""

import logging
from collections.abc import Iterator, Sequence
from typing import Any

from django.db.models import F, Q, QuerySet

from documents.embedders import embedder_for
from documents.models import EmbeddingSpace
from documents.services import default_space
from inference.interfaces import BackendUnavailable, InferenceError
from inference.vectors import check_vectors
from memory.models import MAX_EMBED_ATTEMPTS, Context, Fact, UserRowQuerySet
from memory.scopes import UserScope

logger = logging.getLogger(__name__)

BATCH_ROWS = 64
#: Rows of a failed batch are tried one by one from this attempt on, so that only the faulty one
#: fails.
SINGLE_AFTER_ATTEMPTS = 2

Row = Context | Fact


def embedded_text(row: Row) -> str:
    """The text of a row that is embedded."""
    if isinstance(row, Fact):
        return f"{row.key.replace('_', ' ')}: {row.value}"
    return f"{row.user_message}\n{row.assistant_response}".strip()


def embed_waiting(
    *,
    scope: UserScope | None = None,
    contexts: Sequence[int] | None = None,
    facts: Sequence[int] | None = None,
) -> int:
    """Embed rows without a vector in the default space, of one user, of these ids, or all; returns
    how many.

    Rows in a former default space move. A text that the model rejects is tried MAX_EMBED_ATTEMPTS
    times. Raises BackendUnavailable, which counts against no text.
    """
    space = default_space()
    others = list(EmbeddingSpace.objects.exclude(pk=space.pk).values_list("pk", flat=True))
    everything = contexts is None and facts is None
    done = 0
    for model, ids in ((Context, contexts), (Fact, facts)):
        if everything or ids is not None:
            everybodys: UserRowQuerySet[Any] = model.objects.filter(
                Q(embedding__isnull=True) | Q(space_id__in=others),
                embed_attempts__lt=MAX_EMBED_ATTEMPTS,
            )
            rows = everybodys if scope is None else everybodys.of(scope)
            rows = rows.defer("embedding", "search_vector")
            done += _embed_rows(rows if ids is None else rows.filter(pk__in=ids), space)
    return done


def _embed_rows(rows: QuerySet[Any], space: EmbeddingSpace) -> int:
    done = 0
    for batch in _batches(rows):
        # Counted before, so that a text which kills the process is not tried for ever.
        tried = rows.model.objects.filter(pk__in=[row.pk for row in batch])
        tried.update(embed_attempts=F("embed_attempts") + 1)
        try:
            embedder = embedder_for(space)
            vectors = embedder.embed_documents([embedded_text(row) for row in batch])
            vectors = check_vectors(vectors, dimensions=space.dimensions)
        except BackendUnavailable:
            tried.update(embed_attempts=F("embed_attempts") - 1)
            raise
        except InferenceError as error:
            logger.warning("%d memories could not be embedded: %s", len(batch), error)
            continue
        # Texts of a row never change, so that a late vector is still valid.
        for row, vector in zip(batch, vectors, strict=True):
            row.embedding, row.space, row.embed_attempts = vector, space, 0
        done += tried.bulk_update(batch, ["embedding", "space", "embed_attempts"])
    return done


def _batches(rows: QuerySet[Any]) -> Iterator[list[Any]]:
    """Rows in batches, then those that failed before one by one; each once."""
    is_fresh = Q(embed_attempts__lt=SINGLE_AFTER_ATTEMPTS)
    for condition, size in ((is_fresh, BATCH_ROWS), (~is_fresh, 1)):
        last = 0
        while batch := list(rows.filter(condition, pk__gt=last).order_by("pk")[:size]):
            last = batch[-1].pk
            yield batch
