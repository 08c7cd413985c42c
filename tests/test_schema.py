"""A new database is made at once, and is what the migrations make."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from django.conf import settings
from django.db import connection
from psycopg import sql

from ragsite import embedded
from ragsite.embedded.postgres import EXTENSIONS
from ragsite.new_database import SCHEMA, load_schema, migrations_in_schema, migrations_on_disk
from scripts.schema import dump_schema, schema_of_migrations
from tests.test_bootstrap import Said, manage

#: Of each of the tests' processes its own: they share the server.
NAME = f"new_database_{os.environ.get('PYTEST_XDIST_WORKER', 'alone')}"


@pytest.fixture
def database() -> Iterator[str]:
    """The URL of an empty database."""
    with psycopg.connect(embedded.libpq_url(settings.VAR_DIR), autocommit=True) as server:
        drop = sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(NAME))
        server.execute(drop)
        create = sql.SQL("CREATE DATABASE {} TEMPLATE template0")  # without our extensions
        server.execute(create.format(sql.Identifier(NAME)))
        try:
            yield embedded.libpq_url(settings.VAR_DIR, NAME)
        finally:
            server.execute(drop)


def migrate(
    *words: str, user: str = "ragsite", query: str = "", code: int = 0, **environment: str
) -> Said:
    url = embedded.database_url(settings.VAR_DIR, NAME).replace("ragsite@", f"{user}@", 1)
    said = manage(
        "migrate",
        *words,
        var_dir=Path(settings.VAR_DIR),
        DATABASE_URL=f"{url}{query}",
        **environment,
    )
    assert said.code == code, said
    return said


def rows(url: str, statement: str) -> list[Any]:
    with psycopg.connect(url) as opened:
        return opened.execute(statement).fetchall()


def test_the_file_is_what_the_migrations_make() -> None:
    made = schema_of_migrations(settings.VAR_DIR)
    assert made == SCHEMA.read_text(), "run `make schema`"


def test_a_database_that_the_file_makes_is_what_the_file_says(database: str) -> None:
    with psycopg.connect(database) as opened:
        opened.execute(SCHEMA.read_text())
    # PostgreSQL writes casts and parentheses of checks another way once it has read them again.
    casts = re.compile(r"::(?:text|character varying)(?:\[\])?|[()]")
    assert casts.sub("", dump_schema(database)) == casts.sub("", SCHEMA.read_text())


def test_the_file_has_every_migration() -> None:
    assert migrations_in_schema() == migrations_on_disk()


def test_a_new_database_is_made_by_the_file_and_has_what_follows_migrations(database: str) -> None:
    said = migrate()
    assert said.out == f"Made the tables of {len(migrations_on_disk())} migrations.\n"
    (counts,) = rows(
        database,
        "SELECT (SELECT count(*) FROM django_migrations),"
        " (SELECT count(*) > 40 FROM django_content_type),"
        " (SELECT count(*) > 160 FROM auth_permission),"
        " (SELECT count(*) > 40 FROM pg_policy WHERE polname = 'workspace'),"
        " has_table_privilege('ragsite_site', 'documents_chunk', 'INSERT')",
    )
    assert counts == (len(migrations_on_disk()), True, True, True, True)
    assert "No migrations to apply" in migrate().out


def test_the_first_space_is_of_the_model_that_is_set(database: str) -> None:
    migrate("--verbosity=0", EMBEDDER_BACKEND="inference.backends.onnx_local.OnnxEmbedder")
    names = rows(database, "SELECT id, name, model_name FROM documents_embeddingspace")
    assert names == [(1, "bge-small-en-384", "bge-small-en-v1.5")]


def test_what_is_not_empty_is_migrated_in_steps(database: str) -> None:
    """As far as to what is in the way: all of them are taken above, which takes long."""
    with psycopg.connect(database) as opened:
        opened.execute("CREATE TABLE documents_document ()")
    said = migrate(code=1)
    assert "Applying accounts.0001_initial... OK" in said.out
    assert "Applying documents.0001_initial..." in said.out
    assert '"documents_document" already exists' in said.err


def test_a_schema_of_its_own_gets_all_and_public_nothing(database: str) -> None:
    migrate("--verbosity=0", query="?schema=rag")
    assert rows(database, "SELECT count(*) FROM rag.django_migrations")[0][0] > 60
    assert rows(database, "SELECT relname FROM pg_class WHERE relnamespace = 2200") == []
    paths = rows(
        database,
        "SELECT DISTINCT proconfig[1] FROM pg_proc WHERE pronamespace = 'rag'::regnamespace"
        " AND proconfig IS NOT NULL",
    )
    assert paths == [("search_path=rag,public",)]


def test_a_database_of_somebody_who_may_make_neither_extensions_nor_roles(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as opened:
        for name in EXTENSIONS:
            opened.execute(f"CREATE EXTENSION {name}")
        opened.execute("DROP ROLE IF EXISTS new_database_owner")
        opened.execute("CREATE ROLE new_database_owner LOGIN")
        opened.execute("GRANT CREATE ON SCHEMA public TO new_database_owner")
        try:
            assert "Made the tables" in migrate(user="new_database_owner").out
            owners = "SELECT DISTINCT tableowner FROM pg_tables WHERE schemaname = 'public'"
            assert rows(database, owners) == [("new_database_owner",)]
        finally:
            opened.execute("DROP OWNED BY new_database_owner")
            opened.execute("DROP ROLE new_database_owner")


@pytest.mark.django_db
def test_nothing_is_loaded_into_a_database_with_tables() -> None:
    assert not load_schema(connection)
