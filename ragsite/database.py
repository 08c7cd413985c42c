"""Whether the site's database can be used, and which cure to name where it cannot."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit

from django.db import DatabaseError, connection, transaction
from django.db.migrations.executor import MigrationExecutor

SCHEMES = frozenset({"postgres", "postgresql", "pgsql", "psql"})
_FORM = (
    "{name} must look like postgresql://USER:PASSWORD@HOST:PORT/NAME, with special "
    "characters of the password percent-encoded; unset it to use the embedded PostgreSQL."
)
#: Any number will do as long as every process of the site takes the same one.
MIGRATION_LOCK = 7_245_551
_CURES = (
    (
        r"password|no pg_hba\.conf entry|role .* does not exist",
        "Check the user and the password in DATABASE_URL.",
    ),
    (
        r"database .* does not exist",
        "Create it with `createdb`, or correct the name in DATABASE_URL.",
    ),
    (
        r"",
        "Check the host and the port in DATABASE_URL, and that the server runs and lets this "
        "machine in; unset DATABASE_URL to use the embedded PostgreSQL.",
    ),
)


class UnusableDatabaseError(Exception):
    """The database cannot be used as it is; the message names the cure and no password."""


def check_urls(environment: Mapping[str, str]) -> None:
    """Raise UnusableDatabaseError where an address is set that is none of PostgreSQL."""
    check_url(environment.get("DATABASE_URL", ""))
    for url in environment.get("DATABASE_REPLICA_URL", "").split(","):
        check_url(url.strip(), name="DATABASE_REPLICA_URL")


def check_url(url: str, *, name: str = "DATABASE_URL") -> None:
    """Raise UnusableDatabaseError where `url`, the variable `name`, is none of PostgreSQL."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        usable = parts.scheme in SCHEMES and len(parts.path) > 1
        _ = parts.port
    except ValueError:
        usable = False
    if not usable:
        raise UnusableDatabaseError(f"{name} cannot be read. {_FORM.format(name=name)}")


def check_server(*, to_migrate: bool) -> None:
    """Raise UnusableDatabaseError unless the server lets us in and has what migrations need."""
    try:
        connection.ensure_connection()
    except DatabaseError as error:
        problem = str(error).strip().splitlines()[0]
        cure = next(cure for pattern, cure in _CURES if re.search(pattern, problem))
        raise UnusableDatabaseError(f"The database cannot be reached: {problem}. {cure}") from error
    try:
        if to_migrate:
            _check_vector()
    finally:
        connection.close()


def pending() -> int:
    """How many migrations wait to be applied."""
    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


@contextmanager
def migration_lock() -> Iterator[None]:
    """Let one process at a time migrate; the others wait."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [MIGRATION_LOCK])
    try:
        yield
    finally:
        connection.close()  # gives the lock back, whatever became of the transaction


def _check_vector() -> None:
    name, user = connection.settings_dict["NAME"], connection.settings_dict["USER"]
    with connection.cursor() as cursor:
        cursor.execute("SELECT FROM pg_extension WHERE extname = 'vector'")
        if cursor.rowcount:
            return
        cursor.execute("SELECT FROM pg_available_extensions WHERE name = 'vector'")
        if not cursor.rowcount:
            raise UnusableDatabaseError(
                "This PostgreSQL has no pgvector. Install pgvector 0.8 or later on the server "
                "(Debian: postgresql-NN-pgvector; image: pgvector/pgvector), "
                "or unset DATABASE_URL to use the embedded PostgreSQL."
            )
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("CREATE EXTENSION vector")
            transaction.set_rollback(True)
    except DatabaseError as error:
        raise UnusableDatabaseError(
            f"Database {name} lacks the extension vector, and {user} may not create it "
            f"({str(error).splitlines()[0]}). Run once as a superuser: "
            f'psql -d {name} -c "CREATE EXTENSION vector"'
        ) from error
