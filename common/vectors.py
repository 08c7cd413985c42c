"""The vector types of pgvector on every database connection."""

from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from pgvector.psycopg import register_vector
from psycopg import ProgrammingError


def register_vector_types(sender: Any, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Teach a connection pgvector's types, which takes it four questions: one out of the pool knows
    them.

    Before any cursor exists, because psycopg copies the adapters when it makes one. A database
    without the extension yet (the first `migrate`) is left alone.
    """
    if connection.vendor != "postgresql" or connection.connection.adapters.types.get("vector"):
        return
    try:
        register_vector(connection.connection)
    except ProgrammingError:
        return


def connect() -> None:
    """Register on `connection_created`."""
    connection_created.connect(register_vector_types, dispatch_uid="common.vectors")
