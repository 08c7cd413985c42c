"""The indexes of embedding spaces as the database has them: built, dropped, measured."""

from collections.abc import Iterable
from dataclasses import dataclass

from django.db import connection

from common.replicas import read_connection
from documents.models import Chunk, EmbeddingSpace

_STATES = """
    SELECT class.relname, index.indisvalid, greatest(class.reltuples, 0)::int8,
           pg_relation_size(class.oid)
    FROM pg_class AS class
    JOIN pg_index AS index ON index.indexrelid = class.oid
    WHERE class.relname = ANY(%s) AND class.relnamespace = current_schema()::regnamespace
"""


@dataclass(frozen=True, slots=True)
class IndexState:
    """An index that exists. A build that broke off leaves one that is not `valid`: it is written
    to and never read. `rows` is the database's estimate."""

    valid: bool
    rows: int
    bytes: int


def index_states(spaces: Iterable[EmbeddingSpace]) -> dict[int, IndexState]:
    """The indexes that exist, by space id."""
    names = {space.sql.index_name: space.pk for space in spaces}
    with read_connection().cursor() as cursor:
        cursor.execute(_STATES, [list(names)])
        return {names[name]: IndexState(*state) for name, *state in cursor.fetchall()}


def build_index(space: EmbeddingSpace, *, rebuild: bool = False) -> bool:
    """Build the space's index while everybody goes on reading and writing; whether it was built.

    One that is there stays unless `rebuild`; the broken rest of a build that was killed goes.
    Must not be called inside a transaction.
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
    """Build it anew beside the one that is there, which is searched until then; whether there was
    one to build. Must not be called inside a transaction."""
    state = index_states([space]).get(space.pk)
    if state is None or not state.valid:
        return build_index(space)
    with connection.cursor() as cursor:
        cursor.execute(f"REINDEX INDEX CONCURRENTLY {space.sql.index_name}")
    return True


def drop_index(space: EmbeddingSpace) -> None:
    """Drop the space's index, if there is one, without locking anybody out."""
    with connection.cursor() as cursor:
        cursor.execute(space.sql.drop_index(concurrently=True))
