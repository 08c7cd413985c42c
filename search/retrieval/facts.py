"""What a search must know of the collections in its scope, read in one query."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Subquery, Sum
from django.db.models.functions import Coalesce

from documents.models import Collection, EmbeddingSpace, LexicalStatistics
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


@dataclass(frozen=True, slots=True)
class ScopeFacts:
    """The scope's collections by id, and every space that holds chunks of theirs: their own, and
    those that chunks are just leaving. `stale`: words, and so chunks, are not counted yet."""

    collections: Mapping[int, CollectionFacts]
    spaces: tuple[EmbeddingSpace, ...]
    stale: bool

    @property
    def chunks(self) -> int:
        """How many chunks the collections had when their words were counted."""
        return sum(collection.chunks for collection in self.collections.values())


def scope_facts(scope: Scope) -> ScopeFacts:
    """Read them. A collection that was deleted since the scope was made is absent."""
    counted = (
        LexicalStatistics.objects.filter(collection=OuterRef("pk"))
        .order_by()
        .values("collection")
        .annotate(chunks=Sum("chunk_count"))
        .values("chunks")
    )
    collections = list(
        Collection.objects.filter(id__in=scope.collection_ids)
        .annotate(chunks=Coalesce(Subquery(counted), 0))
        .select_related("space")
        .order_by("id")
    )
    spaces = {collection.space_id: collection.space for collection in collections}
    former = {space for collection in collections for space in collection.former_spaces}
    for space in EmbeddingSpace.objects.filter(pk__in=former - spaces.keys()) if former else ():
        spaces[space.pk] = space
    return ScopeFacts(
        collections={
            collection.pk: CollectionFacts(
                slug=collection.slug,
                name=collection.name,
                space_id=collection.space_id,
                chunks=collection.chunks,
                reranker=collection.reranker,
                rerank_instruction=collection.rerank_instruction,
                tuning=collection.tuning,
            )
            for collection in collections
        },
        spaces=tuple(spaces[pk] for pk in sorted(spaces)),
        stale=any(collection.statistics_stale for collection in collections),
    )
