"""pgvector's types on database connections."""

import numpy as np
import pytest
from django.db import connection
from pgvector import Bit, HalfVector, SparseVector, Vector
from pgvector.psycopg.bit import BitDumper
from pgvector.psycopg.halfvec import HalfVectorDumper
from pgvector.psycopg.sparsevec import SparseVectorDumper
from pgvector.psycopg.vector import VectorDumper
from psycopg import Cursor

pytestmark = pytest.mark.django_db
DUMPERS = VectorDumper, HalfVectorDumper, SparseVectorDumper, BitDumper


def classes() -> int:
    """Those made of pgvector's, which psycopg never lets go of."""
    return sum(len(kind.__subclasses__()) for base in DUMPERS for kind in _family(base))


def _family(base: type) -> list[type]:
    return [base, *(each for kind in base.__subclasses__() for each in _family(kind))]


def connect_anew() -> None:
    other = connection.copy()
    other.ensure_connection()
    other.close()


def test_every_further_connection_has_the_same_classes() -> None:
    connect_anew()
    before = classes()
    for _ in range(3):
        connect_anew()
    assert classes() == before


@pytest.mark.parametrize("binary", [True, False])
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("vector", Vector([1, 2, 3])),
        ("halfvec", HalfVector([1, 2, 3])),
        ("sparsevec", SparseVector([1, 0, 3])),
    ],
)
def test_what_is_written_is_read(name: str, value: object, *, binary: bool) -> None:
    connection.ensure_connection()
    format = "b" if binary else "t"
    # The server's own parameters, as COPY and pipelines have them: Django's cursors write them in.
    with Cursor(connection.connection) as cursor:
        cursor.execute(f"SELECT %{format}::{name}", [value], binary=binary)
        assert cursor.fetchone()[0] == value


def test_arrays_are_vectors_and_bits_are_bits() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %s <-> '[1,2,5]'::vector", [np.array([1.0, 2.0, 3.0])])
        assert cursor.fetchone()[0] == 2
        cursor.execute("SELECT %s::bit(1)", [Bit("1")])
        assert cursor.fetchone()[0] == "1"
