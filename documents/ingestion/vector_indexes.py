"""Vector indexes of embedding spaces: built, rebuilt, dropped, measured, and suspended during bulk
loads."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from django.db import connection
from django.utils.translation import gettext

from common.errors import Conflict
from common.replicas import read_connection
from documents.models import Chunk, Collection, EmbeddingSpace

_INDEX_STATES = """
    SELECT class.relname, index.indisvalid, greatest(class.reltuples, 0)::int8,
           pg_relation_size(class.oid)
    FROM pg_class AS class
    JOIN pg_index AS index ON index.indexrelid = class.oid
    WHERE class.relname = ANY(%s) AND class.relnamespace = current_schema()::regnamespace
"""


@dataclass(frozen=True, slots=True)
class IndexState:
    """An existing index. An interrupted build leaves one that is not `valid`: it is written to and
    never read. `rows` is the database's estimate."""

    valid: bool
    rows: int
    bytes: int


def index_states(spaces: Iterable[EmbeddingSpace]) -> dict[int, IndexState]:
    """The indexes that exist, by space id."""
    names = {space.sql.index_name: space.pk for space in spaces}
    with read_connection().cursor() as cursor:
        cursor.execute(_INDEX_STATES, [list(names)])
        return {names[name]: IndexState(*state) for name, *state in cursor.fetchall()}


def build_index(space: EmbeddingSpace, *, rebuild: bool = False) -> bool:
    """Build the space's index without blocking reads or writes; returns whether it was built.

    An existing one stays unless `rebuild`; the rest of an interrupted build is dropped. Must not be
    called inside a transaction.
    """
    state = index_states([space]).get(space.pk)
    if space.index_type == space.IndexType.NONE or (state and state.valid and not rebuild):
        return False
    if state:
        drop_index(space)
    rows = Chunk.objects.filter(space=space).count()
    with connection.cursor() as cursor:
        cursor.execute(space.sql.create_index(rows=rows, concurrently=True))
    return True


def rebuild_index(space: EmbeddingSpace) -> bool:
    """Rebuild it beside the existing one, which is searched until then; returns whether there was
    one. Must not be called inside a transaction."""
    state = index_states([space]).get(space.pk)
    if state is None or not state.valid:
        return build_index(space)
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX INDEX CONCURRENTLY {space.sql.index_name}")
    return True


def drop_index(space: EmbeddingSpace) -> None:
    """Drop the space's index, if there is one, without blocking."""
    with connection.cursor() as cursor:
        cursor.execute(space.sql.drop_index(concurrently=True))


@contextmanager
def suspended_index(collection: Collection) -> Iterator[None]:
    """Drop the index of the collection's space, and build it in one go at the end.

    Until then searches compare with every vector of the space, so it must be this collection's
    alone: raises Conflict if others have chunks in it. A process killed meanwhile leaves no index;
    `manage.py validate` reports that and, with --fix, builds it. Must not be entered inside a
    transaction.
    """
    space = collection.space
    state = index_states([space]).get(space.pk)
    if space.index_type == EmbeddingSpace.IndexType.NONE or state is None:
        yield
        return
    if Chunk.objects.filter(space=space).exclude(collection=collection).exists():
        raise Conflict(
            gettext(
                "Other collections have chunks in the space “{space}”, and without its"
                " index their searches would be slow. Load with the index, or give this"
                " collection its own space (`manage.py spaces add`)."
            ).format(space=space.name)
        )
    drop_index(space)
    try:
        yield
    finally:
        build_index(space)
