"""Databases, SQLite and PostgreSQL, are read as they are and never written to; their tables become
documents by `manage.py catalogue` that stay in step."""

import io
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from sqlalchemy.engine import URL

from documents.catalogue.database import database_label, looks_secret, read_dsn, reflect
from documents.catalogue.tables import CatalogueError, ForeignKey, Table, TableName, table_text
from documents.models import Chunk, Document, IngestionRun

pytestmark = pytest.mark.django_db

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


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    file = tmp_path / "shop.db"
    run_sql(
        file,
        "CREATE TABLE customers (id integer PRIMARY KEY, full_name text);"
        "CREATE TABLE customer_revenue (customer int REFERENCES customers, total numeric);",
    )
    return file


def run_sql(file: Path, script: str) -> None:
    with sqlite3.connect(file) as database:
        database.executescript(script)
    database.close()


def catalogue(*arguments: str, code: int = 0) -> dict[str, Any]:
    """What the command prints as JSON, after it ended with `code`."""
    out = io.StringIO()
    if code:
        with pytest.raises(SystemExit) as ended:
            call_command("catalogue", *arguments, "--collection", "c", "--json", stdout=out)
        assert ended.value.code == code
    else:
        call_command("catalogue", *arguments, "--collection", "c", "--json", stdout=out)
    return json.loads(out.getvalue())


def keys() -> set[str]:
    return set(Document.objects.values_list("key", flat=True))


def test_each_table_is_a_document_with_its_keys(shop: Path) -> None:
    report = catalogue("--dsn", f"sqlite:///{shop}")
    assert (report["documents"]["total"], report["documents"]["ready"]) == (2, 2)
    assert keys() == {"main.customers", "main.customer_revenue"}
    revenue = Document.objects.get(key="main.customer_revenue")
    assert revenue.title == "main.customer_revenue: customer revenue"
    assert revenue.metadata["kind"] == "table"
    assert revenue.metadata["foreign_keys"] == [
        {"columns": ["customer"], "references": "main.customers", "referenced_columns": ["id"]}
    ]
    assert "full_name (full name): TEXT" in Chunk.objects.get(document__key="main.customers").text


def test_a_second_run_leaves_unchanged_tables_alone(shop: Path) -> None:
    catalogue("--dsn", f"sqlite:///{shop}")
    chunk = Chunk.objects.get(document__key="main.customers").pk
    run_sql(shop, "ALTER TABLE customer_revenue ADD COLUMN currency text")
    report = catalogue("--dsn", f"sqlite:///{shop}")
    assert (report["documents"]["ready"], report["documents"]["skipped"]) == (1, 1)
    assert Chunk.objects.get(document__key="main.customers").pk == chunk
    assert "currency" in Chunk.objects.get(document__key="main.customer_revenue").text


def test_tables_that_vanished_are_reported_and_removed_only_when_asked(shop: Path) -> None:
    catalogue("--dsn", f"sqlite:///{shop}")
    catalogue("--ddl", write(shop.with_name("other.sql"), "CREATE TABLE other (a int)"))
    run_sql(shop, "DROP TABLE customer_revenue")
    report = catalogue("--dsn", f"sqlite:///{shop}")
    assert (report["vanished"], report["deleted"]) == (["main.customer_revenue"], False)
    assert len(keys()) == 3
    report = catalogue("--dsn", f"sqlite:///{shop}", "--delete")
    assert (report["vanished"], report["deleted"]) == (["main.customer_revenue"], True)
    assert keys() == {"main.customers", "other"}
    assert not Chunk.objects.filter(text__contains="revenue").exists()


def test_documents_that_are_no_tables_are_never_removed(shop: Path) -> None:
    note = write(shop.with_name("note.txt"), "A note that was here before.")
    call_command("ingest", note, "--collection", "c", "--json", stdout=io.StringIO())
    assert catalogue("--dsn", f"sqlite:///{shop}", "--delete")["vanished"] == []
    assert len(keys()) == 3


def test_scripts_are_read_with_their_broken_parts_named(tmp_path: Path) -> None:
    script = write(tmp_path / "a.sql", "CREATE TABLE good (a int);\nCREATE TABLE bad (((;")
    report = catalogue("--ddl", script, code=1)
    assert keys() == {"good"}
    assert report["failures"][0]["name"] == "bad"
    assert "line 2" in report["failures"][0]["reason"]


def test_a_table_that_can_no_longer_be_read_is_not_taken_for_gone(tmp_path: Path) -> None:
    script = tmp_path / "a.sql"
    catalogue("--ddl", write(script, "CREATE TABLE a (b int); CREATE TABLE c (d int);"))
    report = catalogue(
        "--ddl", write(script, "CREATE TABLE a (b int); CREATE TABLE c (((;"), "--delete", code=1
    )
    assert report["vanished"] == []
    assert keys() == {"a", "c"}


def test_the_address_may_come_from_the_environment_and_stays_there(
    shop: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_DSN", f"sqlite:///{shop}")
    assert catalogue("--dsn-env", "SHOP_DSN")["documents"]["ready"] == 2
    run = IngestionRun.objects.get()
    assert run.source == "catalogue of sqlite:///shop.db"
    assert str(shop.parent) not in json.dumps(
        list(Document.objects.values("key", "source", "declared", "metadata")), default=str
    )


def test_samples_are_shown_only_when_asked_for(shop: Path) -> None:
    run_sql(shop, "INSERT INTO customers VALUES (1, 'Ada')")
    catalogue("--dsn", f"sqlite:///{shop}")
    assert not Chunk.objects.filter(text__contains="Ada").exists()
    catalogue("--dsn", f"sqlite:///{shop}", "--samples", "3")
    assert Chunk.objects.filter(text__contains="Such as Ada.").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--dsn", "postgresql://u:hunter2@127.0.0.1:1/x"], "does not answer"),
        (["--dsn", "nonsense"], "Write it as"),
        (["--dsn-env", "NOT_SET_ANYWHERE"], "NOT_SET_ANYWHERE is not set"),
        (["--ddl", "/no/such/file.sql"], "No such file"),
        (["--dsn", "sqlite:///x.db", "--samples", "1000"], "0 to 20"),
        (["--ddl", "x.sql", "--samples", "3"], "hold no values"),
    ],
)
def test_what_cannot_be_done_ends_with_2_and_the_cure(arguments: list[str], message: str) -> None:
    with pytest.raises(CommandError, match=message) as caught:
        call_command("catalogue", *arguments, "--collection", "c")
    assert caught.value.returncode == 2
    assert "hunter2" not in str(caught.value)
    assert not Document.objects.exists()


def test_scripts_without_tables_end_with_2(tmp_path: Path) -> None:
    script = write(tmp_path / "a.sql", "CREATE TABLE shop.a (b int); SELECT 1;")
    with pytest.raises(CommandError, match="no tables of schema crm"):
        call_command("catalogue", "--ddl", script, "--schema", "crm", "--collection", "c")


def test_a_schema_keeps_the_others_out(tmp_path: Path) -> None:
    script = write(tmp_path / "a.sql", "CREATE TABLE shop.a (b int); CREATE TABLE crm.b (c int);")
    catalogue("--ddl", script)
    assert catalogue("--ddl", script, "--schema", "crm", "--delete")["vanished"] == []
    assert keys() == {"shop.a", "crm.b"}


@pytest.mark.nightly
def test_sqlalchemy_and_sqlglot_are_only_loaded_by_the_command() -> None:
    loaded = subprocess.run(
        [
            sys.executable,
            "-c",
            "import django, sys; django.setup(); import documents.tasks, documents.services,"
            " documents.urls; print([m for m in ('sqlalchemy', 'sqlglot') if m in sys.modules])",
        ],
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "ragsite.settings"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "[]"


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)
