"""Write ragsite/schema.sql, with which a new database is made: what all migrations give.

    .venv/bin/python -m scripts.schema           # after a migration was added
    .venv/bin/python -m scripts.schema --check   # fails where the file lacks one

Migrates an empty database of the embedded PostgreSQL one migration at a time, and dumps it by the
same server's `pg_dump`.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

import psycopg
from psycopg import sql

#: Statements of a dump that a schema may have. Others may depend on the server's version or on who
#: loads it: look at them, then add them here.
_KNOWN = re.compile(
    r"CREATE (?:EXTENSION IF NOT EXISTS|FUNCTION|SEQUENCE|TABLE|(?:UNIQUE )?INDEX) "
    r"|CREATE (?:CONSTRAINT )?TRIGGER "
    r"|ALTER TABLE (?:ONLY )?\w+(?: ALTER COLUMN| ADD CONSTRAINT|$)|INSERT INTO |SELECT .*setval"
)
_STATEMENT = re.compile(r"^(?:ALTER|COMMENT|CREATE|DROP|GRANT|INSERT|REVOKE|SELECT|SET)\b.*", re.M)
#: Bodies of functions stay as they are.
_BODY = re.compile(r"(\$\w*\$.*?\$\w*\$)", re.S)
#: Left out: comments, settings of the session, sequences that nobody has used; and names of
#: schemas, because the first of the search path is meant.
_LEFT_OUT = re.compile(
    r"^(?:--|\\|SET |COMMENT ON EXTENSION |SELECT .*set_config|SELECT .*setval\(.*, 1, false).*\n"
    r"|^\n| WITH SCHEMA public|\bpublic\.",
    re.M,
)
_PATH = re.compile(r"SET search_path TO .*")
_TIME = re.compile(r"'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^']*'")


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "ragsite.settings")
    # Another one than the bundled: the migration that names the space after it is run on loading.
    os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"
    import django

    from ragsite import embedded

    if "--migrate" in sys.argv:
        django.setup()
        _migrate()
        return
    from django.conf import settings

    from ragsite.new_database import SCHEMA, migrations_in_schema, migrations_on_disk

    if "--check" in sys.argv:
        django.setup()
        if migrations_in_schema() != migrations_on_disk():
            sys.exit("ragsite/schema.sql is out of date: run `python -m scripts.schema`")
        return
    embedded.start(settings.VAR_DIR, only=["postgresql"])
    SCHEMA.write_text(schema_of_migrations(settings.VAR_DIR))


def schema_of_migrations(var_dir: Path) -> str:
    """The text of the file, by the migrations of this code."""
    from ragsite import embedded

    name = f"schema_{os.getpid()}"
    with psycopg.connect(embedded.libpq_url(var_dir), autocommit=True) as connection:
        connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(name)))
        try:
            subprocess.run(
                [sys.executable, "-m", "scripts.schema", "--migrate"],
                env=os.environ | {"DATABASE_URL": embedded.database_url(var_dir, name)},
                cwd=Path(__file__).resolve().parent.parent,
                check=True,
            )
            return dump_schema(embedded.libpq_url(var_dir, name))
        finally:
            drop = sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(name))
            connection.execute(drop)


def dump_schema(url: str) -> str:
    """Tables, functions, indexes and rows of a database as SQL that makes them in the first schema
    of the search path. Raises ValueError for a kind of statement that no schema had before.
    """
    from ragsite.embedded.postgres import postgres_software

    program = postgres_software() / "bin" / "pg_dump"
    options = ["--no-owner", "--no-privileges", "--column-inserts", f"--dbname={url}"]
    dump = subprocess.run([program, *options], stdout=subprocess.PIPE, text=True, check=True)
    parts = _BODY.split(dump.stdout)
    for number in range(0, len(parts), 2):
        part = _PATH.sub("SET search_path FROM CURRENT", _LEFT_OUT.sub("", parts[number]))
        parts[number] = _TIME.sub("now()", part)
        for statement in _STATEMENT.findall(parts[number]):
            if not _KNOWN.match(statement):
                raise ValueError(f"a new kind of statement: {statement}")
    return "".join(parts)


def _migrate() -> None:
    """Without what follows each `migrate`: policies, content types and permissions."""
    from django.db import connection
    from django.db.migrations.executor import MigrationExecutor

    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


if __name__ == "__main__":
    main()
