"""Real databases, SQLite and PostgreSQL, are read as they are, and never written to."""

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.db import connection
from sqlalchemy.engine import URL

from documents.catalogue.database import database_label, looks_secret, read_dsn, reflect
from documents.catalogue.tables import CatalogueError, ForeignKey, Table, TableName, table_text

SHOP = """
    CREATE TABLE customers (
        id integer PRIMARY KEY, full_name varchar(40) NOT NULL UNIQUE, password_hash text,
        photo blob, note text
    );
    CREATE TABLE "Order Items" (
        number integer, customer integer NOT NULL REFERENCES customers (id), price numeric(10, 2)
    );
    CREATE TABLE api_tokens (value text);
    CREATE VIEW best AS SELECT id, full_name FROM customers;
    INSERT INTO customers VALUES (1, 'Ada', 'topsecret', NULL, NULL), (2, 'Bob', 'x', NULL, '');
    INSERT INTO "Order Items" VALUES (7, 1, 12.50), (8, 1, 12.50), (9, 2, NULL);
    INSERT INTO api_tokens VALUES ('topsecret');
"""


@pytest.fixture
def sqlite(tmp_path: Path) -> str:
    file = tmp_path / "my shop.db"
    with sqlite3.connect(file) as shop:
        shop.executescript(SHOP)
    shop.close()
    return f"sqlite:///{file}"


@pytest.fixture
def postgresql(django_db_setup: None, django_db_blocker: object) -> Iterator[str]:
    """Two schemas in the tests' own database, committed, because another connection reads them."""
    settings = connection.settings_dict
    url = URL.create(
        "postgres",
        username=settings["USER"] or None,
        password=settings["PASSWORD"] or None,
        database=settings["NAME"],
        query={"host": settings["HOST"], "port": str(settings["PORT"] or 5432)},
    ).render_as_string(hide_password=False)
    with psycopg.connect(url, autocommit=True) as shop:
        shop.execute(
            """
            CREATE SCHEMA shop;
            CREATE SCHEMA crm;
            CREATE TABLE crm.customers (
                id bigserial PRIMARY KEY, "fullName" text NOT NULL, tags text[], born date
            );
            COMMENT ON TABLE crm.customers IS 'Who buys';
            COMMENT ON COLUMN crm.customers."fullName" IS 'As on the passport';
            CREATE TYPE shop.state AS ENUM ('new', 'paid');
            CREATE TABLE shop.orders (
                id bigserial PRIMARY KEY,
                customer bigint NOT NULL REFERENCES crm.customers (id),
                state shop.state, total numeric(10, 2), UNIQUE (customer, total)
            );
            CREATE MATERIALIZED VIEW shop.revenue AS SELECT sum(total) AS total FROM shop.orders;
            INSERT INTO crm.customers ("fullName", born) VALUES ('Ada', '1815-12-10');
            INSERT INTO shop.orders (customer, state, total) VALUES (1, 'paid', 12.5);
            """
        )
        try:
            yield url
        finally:
            shop.execute("DROP SCHEMA shop CASCADE; DROP SCHEMA crm CASCADE")


def tables(dsn: str, *, schema: str = "", samples: int = 0) -> dict[str, Table]:
    found = reflect(read_dsn(dsn), schema=schema, samples=samples)
    return {str(table.name): table for table in found}


def test_sqlite_is_read_with_keys_and_views(sqlite: str) -> None:
    found = tables(sqlite)
    assert list(found) == ["main.Order Items", "main.api_tokens", "main.best", "main.customers"]
    customers, items = found["main.customers"], found["main.Order Items"]
    assert customers.primary_key == ("id",)
    assert customers.unique == (("full_name",),)
    assert [column.type for column in customers.columns][:2] == ["INTEGER", "VARCHAR(40)"]
    assert items.foreign_keys == (
        ForeignKey(("customer",), TableName("main", "customers"), ("id",)),
    )
    assert [column.is_nullable for column in items.columns] == [True, False, True]
    assert found["main.best"].is_view
    assert not customers.is_view


def test_nothing_of_the_rows_is_read_unless_asked_for(sqlite: str) -> None:
    written = "".join(table_text(table) for table in tables(sqlite).values())
    assert "Ada" not in written
    assert "12.5" not in written


def test_samples_are_different_values_and_no_secrets(sqlite: str) -> None:
    found = tables(sqlite, samples=1)
    customers, items = found["main.customers"], found["main.Order Items"]
    assert [column.samples for column in customers.columns] == [("1",), ("Ada",), (), (), ()]
    assert [column.samples for column in items.columns] == [("7",), ("1",), ("12.5",)]
    everything = "".join(table_text(table) for table in tables(sqlite, samples=20).values())
    assert "Such as Ada; Bob." in everything
    assert "topsecret" not in everything


def test_long_values_are_shortened(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.db") as shop:
        shop.execute("CREATE TABLE t (a text)")
        shop.execute("INSERT INTO t VALUES (?)", ["word\n" * 1000])
    shop.close()
    (table,) = tables(f"sqlite:///{tmp_path}/a.db", samples=3).values()
    (sample,) = table.columns[0].samples
    assert sample.startswith("word word")
    assert len(sample) <= 61


@pytest.mark.parametrize(
    "name",
    ["password", "userPassword", "passwordhash", "pwd", "API_KEY", "apiKey", "reset_tokens",
     "salt", "session_id", "auth", "PIN", "card_number", "client_secret"],
)  # fmt: skip
def test_names_of_secrets_are_known(name: str) -> None:
    assert looks_secret(name)


@pytest.mark.parametrize("name", ["author", "shipping", "hashtagless", "pinned", "name", "price"])
def test_harmless_names_are_no_secrets(name: str) -> None:
    assert not looks_secret(name)


def test_postgresql_is_read_schema_by_schema(postgresql: str) -> None:
    found = tables(postgresql)
    assert {"crm.customers", "shop.orders", "shop.revenue"} <= set(found)
    assert not [name for name in found if name.startswith(("pg_", "information_schema"))]
    customers, orders = found["crm.customers"], found["shop.orders"]
    assert customers.comment == "Who buys"
    assert customers.columns[1].comment == "As on the passport"
    assert [column.type for column in customers.columns] == ["BIGINT", "TEXT", "TEXT[]", "DATE"]
    assert orders.foreign_keys == (
        ForeignKey(("customer",), TableName("crm", "customers"), ("id",)),
    )
    assert orders.unique == (("customer", "total"),)
    assert found["shop.revenue"].is_view
    assert set(tables(postgresql, schema="shop")) == {"shop.orders", "shop.revenue"}


def test_samples_of_postgresql(postgresql: str) -> None:
    found = tables(postgresql, schema="crm", samples=3)
    assert [column.samples for column in found["crm.customers"].columns] == [
        ("1",), ("Ada",), (), ("1815-12-10",),
    ]  # fmt: skip


def test_a_table_that_may_not_be_read_has_no_samples(postgresql: str) -> None:
    with psycopg.connect(postgresql, autocommit=True) as shop:
        shop.execute("CREATE ROLE looker LOGIN PASSWORD 'look'")
        shop.execute("GRANT USAGE ON SCHEMA shop, crm TO looker")
        shop.execute("GRANT SELECT ON shop.orders TO looker")
        try:
            dsn = read_dsn(postgresql).set(username="looker", password="look")
            found = {str(table.name): table for table in reflect(dsn, samples=1)}
        finally:
            shop.execute("DROP OWNED BY looker; DROP ROLE looker")
    assert found["shop.orders"].columns[3].samples == ("12.50",)
    assert [column.samples for column in found["crm.customers"].columns] == [(), (), (), ()]


@pytest.mark.parametrize(
    ("dsn", "message"),
    [
        ("nonsense", "cannot be read. Write it as postgresql://"),
        ("sqlite:////no/such/file.db", "no file /no/such/file.db"),
        ("postgresql://u:hunter2@127.0.0.1:1/x", "127.0.0.1:1/x does not answer: .*refused"),
        ("postgres://u@/x?host=127.0.0.1&port=1&password=hunter2", "does not answer"),
        ("mysql://u:hunter2@host/x", "no driver for mysql"),
        ("klingon://u:hunter2@host/x", "no driver for klingon"),
    ],
)
def test_a_database_that_cannot_be_read_says_the_cure_and_no_password(
    dsn: str, message: str
) -> None:
    with pytest.raises(CatalogueError, match=message) as caught:
        reflect(read_dsn(dsn))
    assert "hunter2" not in str(caught.value)


def test_a_file_that_is_no_database_and_one_without_tables(tmp_path: Path) -> None:
    torn, empty = tmp_path / "torn.db", tmp_path / "empty.db"
    torn.write_bytes(b"this is no database at all " * 100)
    empty.touch()
    with pytest.raises(CatalogueError, match=r"torn\.db cannot be read: file is not a database"):
        reflect(read_dsn(f"sqlite:///{torn}"))
    with pytest.raises(CatalogueError, match="no tables in the database"):
        reflect(read_dsn(f"sqlite:///{empty}"))
    assert empty.stat().st_size == 0


def test_an_unknown_schema_names_the_known_ones(sqlite: str) -> None:
    with pytest.raises(CatalogueError, match=r"no schema shop in .*There is: main"):
        reflect(read_dsn(sqlite), schema="shop")


def test_the_label_of_a_database_tells_no_secret(sqlite: str) -> None:
    assert database_label(read_dsn(sqlite)) == "sqlite:///my shop.db"
    url = read_dsn("postgres://ada:hunter2@db.example.org:5433/shop?password=hunter2")
    assert database_label(url) == "postgresql://db.example.org:5433/shop"
