"""Indexes that are missing, or that a build which broke off left behind."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection

from documents.ingestion.indexes import build_index, index_states
from documents.models import Chunk, EmbeddingSpace
from documents.validation.base import Check, Finding, Scope, SqlProbe

#: One that is being built just now is not valid yet either.
_INVALID = """
    SELECT i.indexrelid::int8 AS id, true AS index_invalid
    FROM pg_index i
    JOIN pg_class t ON t.oid = i.indrelid
    JOIN pg_class c ON c.oid = i.indexrelid
    WHERE %(collection)s::bigint IS NULL AND NOT i.indisvalid AND t.relname LIKE 'documents\\_%%'
      AND c.relname !~ '^chunk_space_[0-9]+_index$'
      AND t.relnamespace = current_schema()::regnamespace
      AND NOT EXISTS (
        SELECT FROM pg_stat_progress_create_index p WHERE p.index_relid = i.indexrelid
      )
"""

_BUILDING = """
    SELECT c.relname FROM pg_stat_progress_create_index p JOIN pg_class c ON c.oid = p.index_relid
"""


def _without_index(scope: Scope) -> list[EmbeddingSpace]:
    """Live spaces whose index is broken, or missing where an exact scan would be slow."""
    live = EmbeddingSpace.objects.filter(state=EmbeddingSpace.State.LIVE)
    if scope.collection_id is not None:
        live = live.filter(collections=scope.collection_id)
    spaces = list(live.exclude(index_type=EmbeddingSpace.IndexType.NONE))
    states = index_states(spaces)
    with connection.cursor() as cursor:
        cursor.execute(_BUILDING)
        building = {name for (name,) in cursor.fetchall()}
    return [
        space
        for space in spaces
        if space.sql.index_name not in building
        and (_has_many(space) if space.pk not in states else not states[space.pk].valid)
    ]


def _has_many(space: EmbeddingSpace) -> bool:
    most: int = settings.EXACT_SCAN_CHUNKS
    return Chunk.objects.filter(space=space)[: most + 1].count() > most


def _build(scope: Scope) -> int:
    spaces = _without_index(scope)
    for space in spaces:
        build_index(space)
    return len(spaces)


@dataclass(frozen=True, slots=True)
class _SpaceIndexes:
    checks: tuple[Check, ...] = (
        Check(
            "space_index",
            "embedding spaces",
            "have no usable index, so that searches compare every vector",
            "`manage.py spaces build-index NAME`, or `validate --fix`, which may take long.",
            _build,
        ),
    )

    def findings(self, scope: Scope) -> Iterable[Finding]:
        if spaces := _without_index(scope):
            yield Finding(self.checks[0], len(spaces), tuple(space.name for space in spaces))


PROBES = (
    _SpaceIndexes(),
    SqlProbe(
        _INVALID,
        (
            Check(
                "index_invalid",
                "indexes",
                "(oid) were not built to their end",
                "`REINDEX INDEX CONCURRENTLY` each; `SELECT oid::regclass` names it.",
            ),
        ),
    ),
)
