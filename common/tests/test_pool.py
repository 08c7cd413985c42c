"""Database connections that threads take turns with, bulk load, vectors, and tasks whose broker is
away: against the real servers."""

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import psycopg
import pytest
from celery import current_app
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import OperationalError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from pgvector import Bit, HalfVector, SparseVector, Vector
from pgvector.psycopg.bit import BitDumper
from pgvector.psycopg.halfvec import HalfVectorDumper
from pgvector.psycopg.sparsevec import SparseVectorDumper
from pgvector.psycopg.vector import VectorDumper
from psycopg import Cursor

from common.celery import app, send_or_wait
from common.postgresql import base as pools
from common.postgresql.base import Connection, DatabaseWrapper, Pool, PoolExhausted
from common.sql import copy_rows

pytestmark = pytest.mark.django_db


@pytest.fixture
def wrapper() -> Iterator[DatabaseWrapper]:
    """A thread's face of a pool of two, beside the test's own connection."""
    wrapper = pooled(2)
    yield wrapper
    wrapper.close()
    wrapper.close_pool()


def pooled(size: int) -> DatabaseWrapper:
    described = connection.settings_dict
    options = {**described["OPTIONS"], "pool": size}
    return DatabaseWrapper({**described, "OPTIONS": options, "CONN_MAX_AGE": 0}, "default")


def ask(wrapper: BaseDatabaseWrapper, statement: str = "SELECT pg_backend_pid()") -> int:
    with wrapper.cursor() as cursor:
        cursor.execute(statement)
        return int(cursor.fetchone()[0])


def taken(pool: Pool) -> int:
    """How many connections are lent just now."""
    free = 0
    while pool._free.acquire(blocking=False):
        free += 1
    for _ in range(free):
        pool._free.release()
    return pool.size - free


def test_a_connection_is_given_back_when_it_is_closed_and_used_again(
    wrapper: DatabaseWrapper,
) -> None:
    first = ask(wrapper)
    assert taken(wrapper.pool) == 1
    wrapper.close()
    assert taken(wrapper.pool) == 0
    assert ask(wrapper) == first


def test_what_pgvector_needs_is_asked_once_a_connection(
    wrapper: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    fetch = psycopg.types.TypeInfo.fetch

    def counted(context: Connection, name: str) -> object:
        asked.append(name)
        return fetch(context, name)

    monkeypatch.setattr(psycopg.types.TypeInfo, "fetch", counted)
    for _ in range(3):
        with wrapper.cursor() as cursor:
            cursor.execute("SELECT '[1,2]'::vector")
            assert cursor.fetchone()[0].to_list() == [1, 2]
        wrapper.close()
    assert asked.count("vector") == 1


def test_what_a_borrower_leaves_open_is_undone_for_the_next(wrapper: DatabaseWrapper) -> None:
    wrapper.set_autocommit(False)
    ask(wrapper, "SELECT 1 FROM set_config('work_mem', '77MB', true)")
    wrapper.close()
    assert wrapper.get_autocommit()
    assert ask(wrapper, "SELECT (current_setting('work_mem') = '77MB')::int") == 0


def test_a_transaction_that_failed_is_undone_too(wrapper: DatabaseWrapper) -> None:
    wrapper.set_autocommit(False)
    with pytest.raises(Exception, match="division by zero"):
        ask(wrapper, "SELECT 1 / 0")
    wrapper.close()
    assert ask(wrapper, "SELECT 7") == 7


def test_connections_that_the_server_cut_are_replaced_unseen(wrapper: DatabaseWrapper) -> None:
    cut = ask(wrapper)
    wrapper.close()
    ask(connection, f"SELECT pg_terminate_backend({cut}, 5000)::int")
    assert ask(wrapper) != cut
    wrapper.close()
    assert taken(wrapper.pool) == 0


def test_one_that_is_cut_in_use_is_not_lent_again(wrapper: DatabaseWrapper) -> None:
    cut = ask(wrapper)
    ask(connection, f"SELECT pg_terminate_backend({cut}, 5000)::int")
    with pytest.raises(OperationalError):
        ask(wrapper)
    wrapper.close()
    assert ask(wrapper) != cut


def test_more_threads_than_connections_take_turns(wrapper: DatabaseWrapper) -> None:
    pool = wrapper.pool
    most = 0
    lock = threading.Lock()

    def work(number: int) -> int:
        nonlocal most
        mine = pooled(2)
        assert mine.pool is pool
        answer = ask(mine, f"SELECT {number} FROM pg_sleep(0.001)")
        with lock:
            most = max(most, taken(pool))
        mine.close()
        return answer

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(work, range(50))) == list(range(50))
    assert most <= 2
    assert taken(pool) == 0


def test_who_waits_too_long_is_told_what_to_do() -> None:
    pool = Pool(pooled(1)._connect, size=1, patience=0.05)
    held = pool.getconn()
    with pytest.raises(PoolExhausted, match="RAGSITE_DATABASE_POOL_SIZE"):
        pool.getconn()
    pool.putconn(held)
    assert pool.getconn() is held
    held.close()
    pool.putconn(held)


def test_a_server_that_is_away_is_told_of_at_once_and_takes_no_place() -> None:
    away = pooled(1)
    away.settings_dict = {**away.settings_dict, "HOST": "/nowhere"}
    for _ in range(3):
        with pytest.raises(OperationalError, match="nowhere"):
            ask(away)
    assert taken(away.pool) == 0
    away.close_pool()


def test_the_web_server_shares_connections_and_has_a_thread_for_each_stream() -> None:
    said = (
        "import ragsite.gunicorn as web; from django.conf import settings;"
        "print(web.threads - settings.EVENT_STREAMS - settings.CHAT_STREAMS,"
        " settings.DATABASES['default']['OPTIONS']['pool'],"
        " settings.DATABASES['default']['CONN_MAX_AGE'])"
    )
    told = subprocess.run([sys.executable, "-c", said], capture_output=True, check=True, text=True)
    assert told.stdout.split() == ["8", "16", "0"]
    assert settings.DATABASE_POOL_SIZE == 0  # here, as in commands and workers


def test_connections_that_nobody_needs_go(
    wrapper: DatabaseWrapper, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (wrapper.pool.getconn() for _ in range(2))
    wrapper.pool.putconn(first)
    monkeypatch.setattr(pools, "IDLE_SECONDS", 0.0)
    wrapper.pool.putconn(second)
    assert first.closed


COLUMNS = [("name", "varchar")]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_cut_in_the_middle_is_djangos_error() -> None:
    connection.ensure_connection()
    pid = connection.connection.info.backend_pid
    other = connection.copy()

    def rows() -> Iterator[tuple[str]]:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(%s, 10000)", [pid])
        for number in range(100_000):
            yield (f"group-{number}",)

    try:
        with pytest.raises(OperationalError), transaction.atomic():
            copy_rows(Group._meta.db_table, COLUMNS, rows())
    finally:
        other.close()
        connection.close()
    assert not Group.objects.exists()


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


@app.task(name="tests.counted", ignore_result=True)
def counted(number: int) -> int:
    return number


@pytest.mark.parametrize("task", [counted, "tests.counted"], ids=["task", "name"])
def test_a_task_waits_while_the_broker_is_away(
    task: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as broken:
        broken.setattr(current_app.conf, "broker_url", "redis://127.0.0.1:1/0")
        broken.setattr(current_app, "_pool", None)
        broken.setattr(current_app.amqp, "_producer_pool", None)
        assert not send_or_wait(task, 1)
    assert "the broker does not answer, tests.counted waits for it" in caplog.text
