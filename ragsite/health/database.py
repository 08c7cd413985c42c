"""Probes of the database, each by a connection of its own: those of the requests may all be in
use, and one that hangs must not be one of theirs."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

import psycopg
from django.db import connection
from django.db.migrations.loader import MigrationLoader

from ragsite.health.registry import Outcome

EXTENSIONS = ("vector", "pg_trgm")
_SECONDS = 2


@contextmanager
def asked() -> Iterator[psycopg.Cursor[Any]]:
    """A cursor on a connection for one question."""
    given = connection.get_connection_params()
    parameters = {
        key: value for key, value in given.items() if key not in ("context", "cursor_factory")
    }
    parameters |= {"connect_timeout": _SECONDS, "application_name": "ragsite-health"}
    # Without the settings of a session: a pooler in between need not know them.
    with psycopg.connect(**parameters) as own, own.cursor() as cursor:
        yield cursor


def look_at_server() -> Outcome:
    """It lets us in and answers."""
    with asked() as cursor:
        cursor.execute("SELECT current_setting('server_version')")
        (version,) = cursor.fetchone() or ("",)
    return Outcome(ok=True, detail=f"PostgreSQL {str(version).partition(' ')[0]}")


def look_at_extensions() -> Outcome:
    """What queries are written with is there."""
    with asked() as cursor:
        cursor.execute("SELECT extname, extversion FROM pg_extension")
        there = dict(cursor.fetchall())
    missing = [name for name in EXTENSIONS if name not in there]
    if missing:
        return Outcome(ok=False, detail=f"missing: {', '.join(missing)}; run `manage.py migrate`")
    return Outcome(ok=True, detail=", ".join(f"{name} {there[name]}" for name in EXTENSIONS))


def look_at_migrations() -> Outcome:
    """The tables are as this code wants them."""
    with asked() as cursor:
        cursor.execute("SELECT app, name FROM django_migrations")
        applied = {(app, name) for app, name in cursor.fetchall()}
    pending = known_migrations() - applied
    if pending:
        return Outcome(ok=False, detail=f"{len(pending)} to apply; run `manage.py migrate`")
    return Outcome(ok=True, detail=f"{len(applied)} applied")


@lru_cache(maxsize=1)
def known_migrations() -> frozenset[tuple[str, str]]:
    """Those that this code has: files do not change while it runs."""
    return frozenset(MigrationLoader(None).graph.nodes)
