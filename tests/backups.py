"""What tests of backups share: making one of the test's database, and databases to restore into."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
from django.conf import settings
from django.db import connection
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict

from ragsite import backup, embedded
from ragsite.backup.manifest import NAME, Manifest

WORKER = os.environ.get("PYTEST_XDIST_WORKER", "gw0")


def quiet(what: str) -> None:
    """Whoever is not interested in progress."""


def make_backup(path: Path, **given: Any) -> Manifest:
    """Of the test's own database and MEDIA_ROOT."""
    options: dict[str, Any] = {
        "server": backup.Server.of(connection),
        "media_root": Path(settings.MEDIA_ROOT),
        "secret_key": None,
        "say": quiet,
    }
    return backup.create_backup(path=path, **{**options, **given})


def copy_database(var: Path, *, durable: bool = True) -> None:
    """Start PostgreSQL in `var`, which does not exist yet, with a copy of the test's database:
    quicker than migrations."""
    media, folder = var.with_name("nothing"), var.with_name("copied")
    media.mkdir()
    embedded.start(var, only=["postgresql"], durable=durable)
    noted = make_backup(folder, media_root=media)
    address = conninfo_to_dict(embedded.libpq_url(var))
    backup.restore_backup(
        folder=folder,
        noted=noted,
        server=backup.Server({name: str(value) for name, value in address.items()}),
        media_root=media,
        replace=False,
        say=quiet,
    )


def rewrite(folder: Path, **changes: Any) -> Manifest:
    """Have the manifest say something else, with a digest that fits."""
    changed = replace(Manifest.read(folder), **changes)
    (folder / NAME).unlink()
    changed.write(folder)
    return changed


def server_of(database: str) -> backup.Server:
    """Another database of the test's own PostgreSQL."""
    return backup.Server({**backup.Server.of(connection).options, "dbname": database})


def restore(
    path: Path, database: str, media: Path, *, replacing: bool = False
) -> backup.RestoreResult:
    return backup.restore_backup(
        folder=path,
        noted=backup.checked_manifest(path, say=quiet),
        server=server_of(database),
        media_root=media,
        replace=replacing,
        say=quiet,
    )


def rows(database: str, statement: str) -> list[Any]:
    with server_of(database).connect() as connection:
        return connection.execute(statement).fetchall()  # type: ignore[arg-type]


@contextmanager
def scratch(name: str, *, owner: str = "") -> Iterator[str]:
    """An empty database with the extensions, gone at the end; its name. `owner` is a role that
    may do no more than own it, made where it is missing."""
    database = f"{name}_{WORKER}"
    made = sql.Identifier(database)
    with psycopg.connect(server_of("postgres").address, autocommit=True) as server:
        server.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(made))
        server.execute(sql.SQL("CREATE DATABASE {} TEMPLATE template1").format(made))
        if owner:
            role = sql.Identifier(owner)
            if not server.execute("SELECT FROM pg_roles WHERE rolname = %s", [owner]).rowcount:
                server.execute(sql.SQL("CREATE ROLE {} LOGIN").format(role))
            server.execute(sql.SQL("ALTER DATABASE {} OWNER TO {}").format(made, role))
        try:
            yield database
        finally:
            server.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(made))
            if owner:
                server.execute(sql.SQL("DROP ROLE {}").format(role))
