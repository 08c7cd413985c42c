"""The items nearest to a vector, in whatever metric is asked for."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
from django.db import transaction
from numpy.typing import NDArray

from common.replicas import read_alias, read_connection, reads_from_replica
from documents.ingestion.indexes import IndexState
from documents.models import EmbeddingSpace
from documents.spaces import BINARY_CANDIDATES, BINARY_OVERSAMPLING
from search.results import Scope
from search.retrieval.scope import scope_conditions
from search.retrieval.spaces import (
    MAX_EF_SEARCH,
    index_settings,
    is_large,
    usable_indexes,
)
from search.stores.matches import Match

#: An item may have several passages among the nearest: more are taken than items are wanted.
OVERSAMPLING = 4
FEWEST_PASSAGES = 200
#: From pgvector's distances to similarities: 1 − d, −d, and `<#>` is the negative inner product.
#: `-(0)` would be a negative zero, and be shown as “-0.0”.
SIMILARITIES = {"cosine": "1 - ({})", "l2": "0 - ({})", "ip": "0 - ({})"}

_NEAREST = """
    WITH passage AS MATERIALIZED (
        SELECT chunk.id, chunk.document_id, {distance} AS distance
        FROM {chunks}
    ), item AS (
        SELECT DISTINCT ON (document_id) id, document_id, distance
        FROM passage ORDER BY document_id, distance, id
    ), nearest AS (
        SELECT * FROM item ORDER BY distance, document_id LIMIT %(k)s
    )
    SELECT document.key, {similarity}, chunk.text, chunk.metadata, document.title,
           nearest.document_id, nearest.id
    FROM nearest
    JOIN documents_chunk AS chunk ON chunk.id = nearest.id
    JOIN documents_document AS document ON document.id = nearest.document_id
    ORDER BY nearest.distance, nearest.document_id
"""


@reads_from_replica
def nearest_items(
    vector: NDArray[np.float32], *, space: EmbeddingSpace, scope: Scope, k: int, metric: str
) -> tuple[Match, ...]:
    """The `k` items in `scope` whose best passage is nearest to `vector`: never fewer than there
    are. Beyond `EXACT_SCAN_CHUNKS` the space's own metric is asked of its index."""
    index = usable_indexes([space]).get(space.pk) if metric == space.metric else None
    if index is not None and is_large(scope):
        found = _nearest(vector, space=space, scope=scope, k=k, metric=metric, index=index)
        if len(found) == k:
            return found
    return _nearest(vector, space=space, scope=scope, k=k, metric=metric, index=None)


def _nearest(
    vector: NDArray[np.float32],
    *,
    space: EmbeddingSpace,
    scope: Scope,
    k: int,
    metric: str,
    index: IndexState | None,
) -> tuple[Match, ...]:
    conditions, parameters = scope_conditions(scope)
    chunks = (
        f"documents_chunk AS chunk WHERE {space.sql.predicate}"
        f" AND chunk.embedding IS NOT NULL AND {conditions}"
    )
    if index is not None:
        chunks = (
            f"(SELECT chunk.id, chunk.document_id, embedding FROM {chunks}"
            f" ORDER BY {space.sql.indexed_distance('%(vector)s')} LIMIT %(passages)s) AS chunk"
        )
    sql = _NEAREST.format(
        distance=replace(space.sql, metric=metric).distance("%(vector)s"),
        chunks=chunks,
        similarity=SIMILARITIES[metric].format("nearest.distance"),
    )
    passages = _passages(space, k)
    asked: dict[str, Any] = {**parameters, "vector": vector, "k": k, "passages": passages}
    with transaction.atomic(using=read_alias()), read_connection().cursor() as cursor:
        if index is not None:
            probes = space.sql.probes(index.rows)
            ef_search = space.index_options.get("ef_search") or min(passages, MAX_EF_SEARCH)
            cursor.execute(index_settings(ef_search=ef_search, probes=probes))
        cursor.execute(sql, asked)
        return tuple(_match(*row) for row in cursor.fetchall())


def _passages(space: EmbeddingSpace, k: int) -> int:
    """How many passages the index is asked for. Bits are coarse: the whole vectors decide."""
    if space.precision == EmbeddingSpace.Precision.BINARY:
        return max(OVERSAMPLING * BINARY_OVERSAMPLING * k, BINARY_CANDIDATES)
    return max(OVERSAMPLING * k, FEWEST_PASSAGES)


def _match(
    key: str,
    similarity: float,
    text: str,
    metadata: str,
    title: str,
    document_id: int,
    chunk_id: int,
) -> Match:
    return Match(
        id=key,
        score=similarity,
        text=text,
        metadata=json.loads(metadata),  # Django leaves jsonb as text
        title=title,
        similarity=similarity,
        lexical=None,
        document_id=document_id,
        chunk_id=chunk_id,
    )
