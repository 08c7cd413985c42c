"""System checks of the database server and replicas, and a helper for checks of settings."""

from collections.abc import Iterable, Sequence
from math import inf
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Tags, Warning
from django.core.checks import register as register_check
from django.db import connections

from common.rls import ROLE_NAME, request_role

#: Tag of checks of settings; commands that do work run these.
SETTINGS = "settings"

MINIMUM_PGVECTOR = (0, 8)
MINIMUM_POSTGRESQL = 150000


def out_of_bounds(
    names: Iterable[str], number: str, hint: str, *, minimum: float, maximum: float = inf
) -> list[CheckMessage]:
    """An error with id `number` for each of these settings that is out of bounds, NaN or
    infinite.
    """
    return [
        Error(f"RAGSITE_{name} is {value}.", hint=hint, id=number)
        for name in names
        if not minimum <= (value := getattr(settings, name)) <= maximum or value == inf
    ]


def check_database(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """PostgreSQL is new enough, has pgvector, folds the case of non-ASCII letters, and sorts as it
    did when its indexes were made."""
    messages: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            cursor.execute(
                "SELECT current_setting('server_version_num')::int, lower('Ä') = 'ä',"
                " (SELECT max(version) FROM pg_available_extension_versions WHERE name = 'vector'),"
                " (SELECT extversion FROM pg_extension WHERE extname = 'vector')"
            )
            version, folds_case, available, installed = cursor.fetchone()
        messages += _server_messages(version, folds_case) + _vector_messages(installed or available)
        messages += _rls_messages(alias)
        if version >= MINIMUM_POSTGRESQL and (name := changed_collation(alias)):
            problem = f"The database {name} was made with another version of its collation."
            messages.append(Warning(problem, hint=COLLATION_CURE, id="common.W004"))
    return messages


#: What to run where `changed_collation` names a database.
COLLATION_CURE = (
    "Run REINDEX DATABASE and then ALTER DATABASE … REFRESH COLLATION VERSION, each with its name."
)


def changed_collation(alias: str = "default") -> str:
    """The name of the database, if its collation is not of the version that it was made with: the
    operating system or ICU may sort otherwise than its indexes. Else empty."""
    with connections[alias].cursor() as cursor:
        cursor.execute(
            "SELECT datname FROM pg_database WHERE datname = current_database()"
            " AND datcollversion IS NOT NULL AND datcollversion IS DISTINCT FROM"
            " pg_database_collation_actual_version(oid)"
        )
        row = cursor.fetchone()
    return row[0] if row else ""


def _rls_messages(alias: str) -> list[CheckMessage]:
    """Row-level security is in force; not checked before the migration that sets it up."""
    connection = connections[alias]
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT current_user, {ROLE_NAME}, (SELECT relrowsecurity"  # noqa: S608 (constants)
            " FROM pg_class WHERE oid = to_regclass('accounts_workspace'))"
        )
        login, role, is_set_up = cursor.fetchone()
    if not is_set_up or request_role(connection):
        return []
    return [
        Warning(
            "Row-level security is not in force: requests run as the owner of the tables.",
            hint=f'Run once as a superuser: CREATE ROLE "{role}" NOLOGIN;'
            f' GRANT "{role}" TO "{login}"; and then `manage.py migrate`.',
            id="common.W003",
        )
    ]


def _server_messages(version: int, folds_case: bool) -> list[CheckMessage]:
    messages: list[CheckMessage] = []
    if version < MINIMUM_POSTGRESQL:
        messages.append(
            Error(
                f"PostgreSQL {version // 10000} is too old.",
                hint="Use PostgreSQL 15 or later.",
                id="common.E001",
            )
        )
    if not folds_case:
        messages.append(
            Warning(
                "The database's character type is plain C: letters beyond ASCII are neither"
                " lower-cased nor found by trigrams.",
                hint="Create the database with LC_CTYPE 'C.UTF-8' and load it again.",
                id="common.W001",
            )
        )
    return messages


def _vector_messages(version: str | None) -> list[CheckMessage]:
    if version is None:
        problem = "PostgreSQL has no pgvector extension."
    elif tuple(int(part) for part in version.split(".")[:2]) < MINIMUM_PGVECTOR:
        problem = f"pgvector {version} is too old."
    else:
        return []
    return [
        Error(
            problem,
            hint="Install pgvector 0.8 or later on the server (Debian: postgresql-NN-pgvector).",
            id="common.E002",
        )
    ]


def check_replicas(**kwargs: Any) -> list[CheckMessage]:
    """The wait for a lagging replica is within bounds."""
    hint = "Set it to 0 or more seconds, at most 60, or leave it out."
    return out_of_bounds(["REPLICA_MAX_LAG_SECONDS"], "common.E003", hint, minimum=0, maximum=60)


def register() -> None:
    """Register all checks of this module."""
    register_check(check_replicas, SETTINGS)
    register_check(check_database, Tags.database)
