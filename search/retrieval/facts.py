"""What a search must know of the collections in its scope and of their spaces."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from common.replicas import read_connection
from documents.models import EmbeddingSpace
from search.results import Scope


@dataclass(frozen=True, slots=True)
class CollectionFacts:
    """`chunks` is their number when the collection's words were last counted."""

    slug: str
    name: str
    space_id: int
    chunks: int
    reranker: str
    rerank_instruction: str
    tuning: Mapping[str, Any] | None
    facets: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The scope's collections by id, and every space that holds chunks of theirs: their own, and
    those that chunks are just leaving. `stale`: words, and so chunks, are not counted yet;
    `restricted`: some chunks have an access list."""

    collections: Mapping[int, CollectionFacts]
    spaces: tuple[EmbeddingSpace, ...]
    stale: bool
    restricted: bool

    @property
    def chunks(self) -> int:
        """How many chunks the collections had when their words were counted."""
        return sum(collection.chunks for collection in self.collections.values())


# By hand, because putting it together from querysets took longer than running it. A former space
# that was dropped since is absent.
_SQL = """
    SELECT collection.id, collection.slug, collection.name, collection.space_id,
           collection.former_spaces, collection.statistics_stale, collection.reranker,
           collection.rerank_instruction, collection.tuning, collection.facets,
           (SELECT coalesce(sum(chunk_count), 0)::bigint
            FROM documents_lexicalstatistics WHERE collection_id = collection.id),
           EXISTS (SELECT FROM documents_chunk
                   WHERE collection_id = collection.id AND access IS NOT NULL)
    FROM documents_collection AS collection
    WHERE collection.id = ANY(%s)
    ORDER BY collection.id
"""


def scope_facts(scope: Scope) -> ScopeFacts:
    """Read them. A collection that was deleted since the scope was made is absent."""
    collections: dict[int, CollectionFacts] = {}
    wanted: set[int] = set()
    is_stale = is_restricted = False
    with read_connection().cursor() as cursor:
        cursor.execute(_SQL, [list(scope.collection_ids)])
        for row in cursor.fetchall():
            pk, slug, name, space_id, former, stale, reranker, instruction = row[:8]
            tuning, facets, chunks, restricted = row[8:]
            collections[pk] = CollectionFacts(
                slug=slug,
                name=name,
                space_id=space_id,
                chunks=chunks,
                reranker=reranker,
                rerank_instruction=instruction,
                tuning=json.loads(tuning) if isinstance(tuning, str) else tuning,
                facets=tuple(facets),
            )
            wanted |= {space_id, *former}
            is_stale = is_stale or stale
            is_restricted = is_restricted or restricted
    spaces = tuple(EmbeddingSpace.objects.filter(pk__in=wanted).order_by("pk"))
    return ScopeFacts(collections, spaces, is_stale, is_restricted)
