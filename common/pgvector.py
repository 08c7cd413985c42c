"""pgvector's types on every database connection, and arrays of numbers as numpy arrays."""

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created
from pgvector import Bit, HalfVector, SparseVector, Vector
from pgvector.psycopg import bit, halfvec, sparsevec, vector
from psycopg.abc import Buffer
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

if TYPE_CHECKING:
    from numpy.typing import NDArray


#: For each type: the Python types written as it, dumpers and loaders.
_ADAPTERS: dict[
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
    """Register pgvector's types on a connection, which takes four queries; pooled connections keep
    them.

    Before any cursor exists, because psycopg copies the adapters when it makes one. A database
    without the extension yet (the first `migrate`) is left alone. pgvector's own `register_vector`
    creates new classes each time; psycopg keeps all of them, so that each connection would leak
    some kilobytes.
    """
    if connection.vendor != "postgresql" or connection.connection.adapters.types.get("vector"):
        return
    adapters = connection.connection.adapters
    for oid, loader in ARRAYS.items():
        adapters.register_loader(oid, loader)
    for name, (written, dumpers, loaders) in _ADAPTERS.items():
        info = TypeInfo.fetch(connection.connection, name)
        if info is None and name == "vector":
            return
        if info is None:
            continue
        info.register(connection.connection)
        for kind in written:
            for dumper in dumpers:
                adapters.register_dumper(kind, _with_oid(dumper, info.oid))
        for each in loaders:
            adapters.register_loader(info.oid, each)


@cache
def _with_oid(dumper: type[Dumper], oid: int) -> type[Dumper]:
    return type(dumper.__name__, (dumper,), {"oid": oid})


def register_on_connect() -> None:
    """Register the types on `connection_created`."""
    connection_created.connect(register_vector_types, dispatch_uid="common.pgvector")


class IntegersLoader(Loader):
    """A bigint[] without NULLs, in binary form, as an array of numpy's."""

    format = Format.BINARY
    dtype: ClassVar[str] = "i8"

    def load(self, data: Buffer) -> "NDArray[Any]":
        """After dimensions, flags and type come per dimension its size and lower bound, then the
        elements, each with its length of 8 before it (PostgreSQL's array_send)."""
        import numpy as np  # noqa: PLC0415 (0.1 s)

        raw = bytes(data)
        if raw[:4] == b"\x00\x00\x00\x00":
            return np.zeros(0, self.dtype)
        fields = [("length", ">i4"), ("value", f">{self.dtype}")]
        return np.frombuffer(raw, dtype=fields, offset=20)["value"].astype(self.dtype)


class FloatsLoader(IntegersLoader):
    """The same for a float8[] without NULLs."""

    dtype = "f8"


#: By the oids of bigint[] and float8[], which are the same in every database.
ARRAYS: dict[int, type[Loader]] = {1016: IntegersLoader, 1022: FloatsLoader}
