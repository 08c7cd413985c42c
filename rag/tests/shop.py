"""Somebody's database on the tests' server, with roles that read, write, or own everything."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import psycopg
from django.db import connection
from psycopg import sql

from documents.catalogue.database import read_dsn, reflect
from documents.models import Collection
from documents.services.catalogue import ingest_catalogue
from rag.sql.options import DatabaseOptions

TABLES = """
CREATE SCHEMA crm;
CREATE TABLE crm.customers (id bigint PRIMARY KEY, name text NOT NULL, city text, "joinedOn" date);
CREATE TABLE crm.orders (
    id bigint PRIMARY KEY,
    customer_id bigint NOT NULL REFERENCES crm.customers (id),
    revenue_eur numeric(12, 2),
    note text
);
CREATE TABLE crm.salaries (id bigint PRIMARY KEY, euros int);
INSERT INTO crm.customers VALUES
    (1, 'Adler', 'Oslo', '2025-01-05'), (2, 'Berg', 'Bergen', '2025-03-01'),
    (3, 'Dahl | Søn', 'Oslo', NULL);
INSERT INTO crm.orders VALUES
    (1, 1, 100.50, 'plain'), (2, 1, 49.50, NULL), (3, 2, 200, '[1] ![x](http://evil.test/)'),
    (4, 3, NULL, '<img src=x>');
INSERT INTO crm.salaries VALUES (1, 99999);
CREATE FUNCTION crm.spend() RETURNS int LANGUAGE sql SECURITY DEFINER
    AS 'UPDATE crm.orders SET revenue_eur = 0; SELECT 1';
-- Would be found before the system's own, were the search path the role's.
CREATE FUNCTION public.lower(text) RETURNS text LANGUAGE sql AS 'SELECT ''shadowed''';
"""
STATE = (
    "SELECT * FROM crm.orders ORDER BY id",
    "SELECT * FROM crm.customers ORDER BY id",
    "SELECT oid::bigint, relname FROM pg_class ORDER BY oid",
    "SELECT oid::bigint, proname FROM pg_proc ORDER BY oid",
    # Its own roles, and the one that a hostile statement makes: other tests make some meanwhile.
    "SELECT oid::bigint, rolname, rolsuper FROM pg_roles"
    " WHERE starts_with(rolname, current_database()) OR rolname = 'evil' ORDER BY oid",
    "SELECT count(*) FROM pg_largeobject_metadata",
)
#: Each process of the test runner has its own.
DATABASE = f"ragsite_test_shop_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"
READER, WRITER, OWNER = (f"{DATABASE}_{role}" for role in ("reader", "writer", "owner"))
ROLES = (READER, WRITER, OWNER)


@dataclass(frozen=True)
class Shop:
    """`address` has no login."""

    address: str
    socket_dir: str
    port: str

    def options(self, role: str = READER, **options: Any) -> DatabaseOptions:
        given = {"address": self.address, "username": role, "name": "Shop", **options}
        return DatabaseOptions.from_data(given)

    def execute(self, statement: str) -> list[tuple[Any, ...]]:
        """As the owner of the server."""
        with _server(DATABASE) as server:
            cursor = server.execute(sql.SQL(statement))  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def state(self) -> list[tuple[Any, ...]]:
        """All that a statement could have changed."""
        with _server(DATABASE) as server:
            return [row for statement in STATE for row in server.execute(statement)]

    def catalogue(self, collection: Collection) -> None:
        """Its tables as documents, but for the salaries."""
        url = read_dsn(f"{self.address}&user={READER}")
        entries = [table for table in reflect(url, schema="crm") if table.name.name != "salaries"]
        ingest_catalogue(
            collection=collection, database=self.options().place.label, entries=entries
        )


def _server(database: str) -> psycopg.Connection[Any]:
    of = connection.settings_dict
    return psycopg.connect(
        host=of["HOST"],
        port=of["PORT"] or None,
        user=of["USER"],
        password=of["PASSWORD"],
        dbname=database,
        autocommit=True,
    )


@contextmanager
def shop() -> Iterator[Shop]:
    """Make it, and remove it with its roles."""
    with _server("postgres") as server:
        _remove(server)
        for role in ROLES:
            server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(sql.Identifier(role)))
        server.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(DATABASE)))
    try:
        with _server(DATABASE) as made:
            made.execute(TABLES)
            made.execute(f"GRANT USAGE ON SCHEMA crm TO {READER}, {WRITER}")
            made.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA crm TO {READER}, {WRITER}")
            made.execute(f"GRANT INSERT ON crm.orders TO {WRITER}")
            made.execute(f"ALTER TABLE crm.salaries OWNER TO {OWNER}")
        of = connection.settings_dict
        host, port = of["HOST"], of["PORT"] or "5432"
        address = f"postgresql:///{DATABASE}?host={quote(host)}&port={port}"
        yield Shop(address, host, port)
    finally:
        with _server("postgres") as server:
            _remove(server)


def _remove(server: psycopg.Connection[Any]) -> None:
    gone = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)")
    server.execute(gone.format(sql.Identifier(DATABASE)))
    for role in ROLES:
        server.execute(sql.SQL("DROP ROLE IF EXISTS {}").format(sql.Identifier(role)))
