"""The stored search vector survives a dump, and means the same under another locale."""

import os
import subprocess
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from django.db import connection
from psycopg import sql

from ragsite.embedded.postgres import postgres_software

pytestmark = pytest.mark.django_db

_INSERT = """
    INSERT INTO public.documents_chunk
        (workspace_id, collection_id, document_id, space_id, ordinal, key, text, context,
         heading_path, summary, token_count, start, "end", media_type, metadata, language,
         content_sha256)
    VALUES (1, 1, 1, 1, 0, '', %s, '', '{}', '', 1, 0, 1, '', '{}', 'simple', '')
"""


def connect(database: str) -> psycopg.Connection[Any]:
    parameters = connection.get_connection_params()
    names = {name: parameters[name] for name in ("host", "port", "user") if parameters.get(name)}
    return psycopg.connect(dbname=database, autocommit=True, **names)


@pytest.fixture(params=["C.UTF-8", "C"])
def restored(request: pytest.FixtureRequest) -> Iterator[psycopg.Connection[Any]]:
    """A dump of the test database, without rows, restored where characters are sorted so."""
    source = connection.settings_dict["NAME"]
    target = f"{source}_restored_{request.param.replace('.', '_').lower()}"
    environment = {
        **os.environ,
        "PGHOST": str(connection.settings_dict["HOST"]),
        "PGPORT": str(connection.settings_dict["PORT"] or 5432),
        "PGUSER": str(connection.settings_dict["USER"]),
    }
    programs = postgres_software() / "bin"
    dump = subprocess.run(
        [programs / "pg_dump", "--schema-only", source],
        env=environment, check=True, capture_output=True,
    ).stdout  # fmt: skip
    drop = sql.SQL("DROP DATABASE IF EXISTS {}").format(sql.Identifier(target))
    create = sql.SQL("CREATE DATABASE {} TEMPLATE template0 LOCALE_PROVIDER libc LOCALE {}").format(
        sql.Identifier(target), sql.Literal(request.param)
    )
    with connect(source) as admin:
        admin.execute(drop)
        admin.execute(create)
        try:
            subprocess.run(
                [programs / "psql", "-q", "-v", "ON_ERROR_STOP=1", target],
                env=environment, input=dump, check=True, capture_output=True,
            )  # fmt: skip
            with connect(target) as there:
                # rows of other tables are of no interest here, nor is any search path
                there.execute("SET session_replication_role = replica; SET search_path = ''")
                yield there
        finally:
            admin.execute(drop)


def test_a_restored_database_finds_what_this_one_does(
    restored: psycopg.Connection[Any],
) -> None:
    texts = ["東京大学の学生、２０２４年。", "Annual_report.pdf of a café", "กรุงเทพมหานคร"]
    for text in texts:
        restored.execute(_INSERT, [text])
    phrases = {"大学": 1, "2024": 1, "生": 1, "京": 1, "学東": 0, "report": 1, "เทพ": 1}
    for phrase, expected in phrases.items():
        found = restored.execute(
            "SELECT count(*) FROM public.documents_chunk"
            " WHERE search_vector @@ public.ragsite_phrase(language, %s)",
            [phrase],
        ).fetchone()
        assert found == (expected,), phrase
