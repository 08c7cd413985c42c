"""The vector types of pgvector on every database connection."""

from functools import cache
from typing import Any

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from pgvector import Bit, HalfVector, SparseVector, Vector
from pgvector.psycopg import bit, halfvec, sparsevec, vector
from psycopg import Connection
from psycopg.adapt import Dumper, Loader
from psycopg.types import TypeInfo

#: Of each type: what is written as it, how, and how it is read.
_TYPES: dict[
    str, tuple[tuple[type | str, ...], tuple[type[Dumper], ...], tuple[type[Loader], ...]]
] = {
    "vector": (
        (Vector, "numpy.ndarray"),
        (vector.VectorDumper, vector.VectorBinaryDumper),
        (vector.VectorLoader, vector.VectorBinaryLoader),
    ),
    "bit": ((Bit,), (bit.BitDumper, bit.BitBinaryDumper), ()),
    "halfvec": (
        (HalfVector,),
        (halfvec.HalfVectorDumper, halfvec.HalfVectorBinaryDumper),
        (halfvec.HalfVectorLoader, halfvec.HalfVectorBinaryLoader),
    ),
    "sparsevec": (
        (SparseVector,),
        (sparsevec.SparseVectorDumper, sparsevec.SparseVectorBinaryDumper),
        (sparsevec.SparseVectorLoader, sparsevec.SparseVectorBinaryLoader),
    ),
}


def register_vector_types(sender: Any, connection: BaseDatabaseWrapper, **kwargs: Any) -> None:
    """Teach a connection pgvector's types, which takes it four questions: one out of the pool knows
    them.

    Before any cursor exists, because psycopg copies the adapters when it makes one. A database
    without the extension yet (the first `migrate`) is left alone.
    """
    if connection.vendor != "postgresql" or connection.connection.adapters.types.get("vector"):
        return
    for name in _TYPES:
        info = TypeInfo.fetch(connection.connection, name)
        if info is not None:
            _register(connection.connection, info)
        elif name == "vector":
            return


def _register(connection: Connection[Any], info: TypeInfo) -> None:
    """As pgvector's own `register_vector`, which makes new classes each time; psycopg keeps all
    that it has seen, so that each connection would cost some kilobytes for ever."""
    info.register(connection)
    written, dumpers, loaders = _TYPES[info.name]
    for kind in written:
        for dumper in dumpers:
            connection.adapters.register_dumper(kind, _with_oid(dumper, info.oid))
    for loader in loaders:
        connection.adapters.register_loader(info.oid, loader)


@cache
def _with_oid(dumper: type[Dumper], oid: int) -> type[Dumper]:
    return type(dumper.__name__, (dumper,), {"oid": oid})


def connect() -> None:
    """Register on `connection_created`."""
    connection_created.connect(register_vector_types, dispatch_uid="common.vectors")
