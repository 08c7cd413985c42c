"""Bulk loading without keeping the vector index up to date row by row."""

from collections.abc import Iterator
from contextlib import contextmanager

from common.errors import Conflict
from documents.ingestion.indexes import build_index, drop_index, index_states
from documents.models import Chunk, Collection, EmbeddingSpace


@contextmanager
def suspended_index(collection: Collection) -> Iterator[None]:
    """Without the index of the collection's space, which is built in one go at the end.

    Until then searches compare with every vector of the space, so the collection must have it for
    itself: raises Conflict where others have chunks in it. A process that is killed meanwhile
    leaves no index; `manage.py validate` says so and, with --fix, builds it. Must not be entered
    inside a transaction.
    """
    space = collection.space
    state = index_states([space]).get(space.pk)
    if space.index_type == EmbeddingSpace.IndexType.NONE or state is None:
        yield
        return
    if Chunk.objects.filter(space=space).exclude(collection=collection).exists():
        raise Conflict(
            f"Other collections have chunks in the space “{space.name}”, and their searches would"
            " be slow without its index. Load with the index, or give this collection a space of"
            " its own (`manage.py spaces add`)."
        )
    drop_index(space)
    try:
        yield
    finally:
        build_index(space)
