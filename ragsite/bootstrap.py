"""Before a command of manage.py runs: services started, database checked, migrations applied.

So that every command works right after `make setup`. Messages go to stderr, because the commands'
stdout may be JSON. Importing settings alone does nothing of this. Begin with `prepare`.
"""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from time import monotonic, sleep
from typing import Any, NoReturn
from urllib.parse import parse_qs, urlsplit

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command, get_commands
from django.db import (
    DatabaseError,
    OperationalError,
    ProgrammingError,
    connection,
    transaction,
)
from psycopg.errors import LockNotAvailable, QueryCanceled, UniqueViolation

from common.postgresql.base import StatementTimeout
from common.rls import limit_statements
from common.text import pluralized
from ragsite import embedded
from ragsite.embedded.postgres import EXTENSIONS
from ragsite.environment import load_env_file
from ragsite.new_database import migrations_on_disk

SCHEMES = frozenset({"postgres", "postgresql", "pgsql", "psql"})
_SCHEMA = re.compile(r"[a-z][a-z0-9_]{0,62}")
_URL_HELP = (
    "{name} must look like postgresql://USER:PASSWORD@HOST:PORT/NAME, with special "
    "characters of the password percent-encoded; unset it to use the embedded PostgreSQL."
)
#: Any number will do as long as every process of the site takes the same one.
MIGRATION_LOCK = 7_245_551
LOCK_PAUSE_SECONDS = 0.1
_CONNECTION_CURES = (
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


#: Between the first tries to reach a server that does not answer; each pause is twice as long.
_FIRST_PAUSE_SECONDS = 0.25
_LONGEST_PAUSE_SECONDS = 4.0


class UnusableDatabaseError(Exception):
    """The database cannot be used as it is; the message names the cure and no password."""


def check_urls(environment: Mapping[str, str]) -> None:
    """Raise UnusableDatabaseError where a configured URL is not one of PostgreSQL."""
    check_url(environment.get("DATABASE_URL", ""))
    for url in environment.get("DATABASE_REPLICA_URL", "").split(","):
        check_url(url.strip(), name="DATABASE_REPLICA_URL")


def check_url(url: str, *, name: str = "DATABASE_URL") -> None:
    """Raise UnusableDatabaseError where `url`, the variable `name`, is not one of PostgreSQL."""
    if not url:
        return
    try:
        parts = urlsplit(url)
        usable = parts.scheme in SCHEMES and len(parts.path) > 1
        _ = parts.port
    except ValueError:
        usable = False
    if not usable:
        raise UnusableDatabaseError(f"{name} cannot be read. {_URL_HELP.format(name=name)}")
    for schema in parse_qs(parts.query, keep_blank_values=True).get("schema", ()):
        if not _SCHEMA.fullmatch(schema) or schema.startswith("pg_"):
            raise UnusableDatabaseError(
                f"“{schema}” in {name} cannot be a schema. Use a lower-case letter and then at most"
                " 62 lower-case letters, digits and underscores; not pg_."
            )


def check_server(*, to_migrate: bool, migrates: bool, say: Callable[[str], None]) -> None:
    """Raise UnusableDatabaseError unless the server can be used and has what migrations need. A
    server that does not answer is retried for RAGSITE_DATABASE_START_SECONDS with growing pauses.
    `migrates` creates a missing schema of the URL.
    """
    deadline = monotonic() + settings.DATABASE_START_SECONDS
    pause = _FIRST_PAUSE_SECONDS
    while True:
        try:
            connection.ensure_connection()
            break
        except DatabaseError as error:
            problem = str(error).strip().splitlines()[0]
            cure = next(cure for pattern, cure in _CONNECTION_CURES if re.search(pattern, problem))
            is_away = cure == _CONNECTION_CURES[-1][1]
            if not is_away or monotonic() + pause > deadline:
                raise UnusableDatabaseError(
                    f"The database cannot be reached: {problem}. {cure}"
                ) from error
        if pause == _FIRST_PAUSE_SECONDS:
            say(
                "the database does not answer yet; trying again for"
                f" {settings.DATABASE_START_SECONDS:g} seconds"
            )
        sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)
    try:
        if to_migrate and settings.DATABASE_SCHEMA:
            _check_schema(settings.DATABASE_SCHEMA, creates=migrates)
        if to_migrate:
            _check_vector()
    finally:
        connection.close()


def pending_migrations() -> int:
    """Number of unapplied migrations.

    Names are compared first, since each command checks and nearly always finds all applied. Raises
    UnusableDatabaseError where the table is locked.
    """
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT app, name FROM django_migrations")
            if migrations_on_disk() <= set(cursor.fetchall()):
                return 0
    except ProgrammingError:
        pass  # no table yet: none is applied
    except OperationalError as error:
        if not isinstance(error.__cause__, QueryCanceled | LockNotAvailable):
            raise
        raise UnusableDatabaseError(
            "Table django_migrations is locked by another session, such as a migration or a"
            " backup, for longer than a statement may take. Try again when that is done; SELECT"
            " pid, query FROM pg_stat_activity shows it."
        ) from error
    from django.db.migrations.executor import MigrationExecutor  # noqa: PLC0415 (imports them all)

    executor = MigrationExecutor(connection)
    return len(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def take_migration_lock(cursor: Any) -> None:
    """Wait for it, and not by a statement that waits: an index that another process builds
    concurrently would wait for that."""
    while True:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [MIGRATION_LOCK])
        if cursor.fetchone() == (True,):
            return
        sleep(LOCK_PAUSE_SECONDS)


@contextmanager
def migration_lock() -> Iterator[None]:
    """Let one process at a time migrate; the others wait."""
    with connection.cursor() as cursor:
        take_migration_lock(cursor)
    try:
        yield
    finally:
        connection.close()  # gives the lock back, whatever became of the transaction


def _check_schema(schema: str, *, creates: bool) -> None:
    """Tables of another site in `public` would be mistaken for this one's, as that is on the search
    path too; and extensions must be created there explicitly.
    """
    name, user = connection.settings_dict["NAME"], connection.settings_dict["USER"]
    with connection.cursor() as cursor:
        if creates:
            try:
                cursor.execute(f"CREATE SCHEMA IF NOT EXISTS {schema}")  # a checked name
                for extension in EXTENSIONS:
                    cursor.execute(f"CREATE EXTENSION IF NOT EXISTS {extension} SCHEMA public")
            except DatabaseError as error:
                raise UnusableDatabaseError(
                    f"Schema {schema} and the extensions in public cannot be made"
                    f" ({str(error).splitlines()[0]}). Run once as a superuser: psql -d {name}"
                    f' -c "CREATE SCHEMA {schema} AUTHORIZATION {user}"'
                    + "".join(f' -c "CREATE EXTENSION {each} SCHEMA public"' for each in EXTENSIONS)
                ) from error
        cursor.execute(
            "SELECT to_regnamespace(%s) IS NOT NULL, current_schema() = %s,"
            " to_regclass(%s) IS NULL AND to_regclass('public.django_migrations') IS NOT NULL",
            [schema, schema, f"{schema}.django_migrations"],
        )
        is_there, is_current, is_shadowed = cursor.fetchone()
    if not is_there:
        raise UnusableDatabaseError(
            f"Database {name} has no schema {schema}: run `manage.py migrate`, which makes it."
        )
    if not is_current:
        raise UnusableDatabaseError(
            f"The search path of ?schema={schema} did not reach the server: a PgBouncer drops it."
            f' Run once: psql -d {name} -c "ALTER ROLE {user} IN DATABASE {name} SET search_path ='
            f' {schema}, public"'
        )
    if is_shadowed:
        raise UnusableDatabaseError(
            f"Schema public of database {name} holds the tables of another site, and {schema} none."
            " Use a database of its own for one of them."
        )


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
        if isinstance(error.__cause__, UniqueViolation):
            return  # another process creates it just now
        raise UnusableDatabaseError(
            f"Database {name} lacks the extension vector, and {user} may not create it "
            f"({str(error).splitlines()[0]}). Run once as a superuser: "
            f'psql -d {name} -c "CREATE EXTENSION vector"'
        ) from error


# These need no database, and some run where there can be none, as in an image's build.
NEED_NOTHING = frozenset(
    {
        "help",
        "version",
        "services",
        "collectstatic",
        "makemessages",
        "compilemessages",
        "startapp",
        "startproject",
        "spectacular",
        "diffsettings",
    }
)
_HELP_OPTIONS = frozenset({"-h", "--help", "--version"})
# Commands that need tables, besides every command of our own apps.
NEED_TABLES = frozenset({"runserver", "shell", "createsuperuser", "changepassword"})
# Commands that take the database as it is: empty, or with tables of an earlier version.
WITHOUT_MIGRATION = frozenset({"backup", "migrate", "restore", "upgrade"})
#: Commands whose statements have the time limit of requests.
LIMITED_STATEMENTS = frozenset({"apikeys", "ask", "runs", "search", "stats"})
OWN_APPS = frozenset(
    {
        "ragsite",
        "dashboard",
        "rag",
        "search",
        "graph",
        "memory",
        "documents",
        "accounts",
        "model_servers",
        "inference",
        "common",
    }
)


def prepare(argv: Sequence[str]) -> None:
    """Prepare what the command in `argv` needs; exit with code 2 and the cure on failure."""
    command = next((word for word in argv[1:] if not word.startswith("-")), "help")
    try:
        load_env_file()
        if list(argv[1:]) in (["--version"], ["version"]):
            print(settings.RAGSITE_VERSION)  # noqa: T201
            sys.exit()
        if command in NEED_NOTHING or _HELP_OPTIONS.intersection(argv):
            _ = settings.VAR_DIR
            return
        check_urls(os.environ)
        ensure_services()
        django.setup()
        if command in LIMITED_STATEMENTS:
            limit_statements()
        ensure_database(command)
        # Set the actor “command” for the audit log. Threads of a server begin without one.
        from accounts.audit import Channel, set_actor  # noqa: PLC0415

        set_actor(channel=Channel.COMMAND)
    except (embedded.ServiceError, UnusableDatabaseError, CommandError) as error:
        _fail(str(error))
    except ImproperlyConfigured as error:
        _fail(f"The settings cannot be used: {error}")


def run(execute: Callable[[list[str]], None], argv: list[str]) -> None:
    """Run the command; a statement timeout becomes one sentence and exit code 2. It ends silently
    when the reader of its output has gone, as `head` does."""
    try:
        try:
            execute(argv)
        finally:
            sys.stdout.flush()
    except StatementTimeout as error:
        _fail(str(error))
    except BrokenPipeError:
        # What is left in the buffer is written when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)


def ensure_services() -> None:
    """Start the embedded servers that the settings use, unless they answer already."""
    used = used_services()
    if embedded.answering(settings.VAR_DIR, only=used):
        return
    services = embedded.start(
        settings.VAR_DIR, only=used, chmod_parents=settings.EMBEDDED_CHMOD_PARENTS
    )
    started = [service for service in services if service.detail == "started"]
    if started:
        names = " and ".join(f"{status.name} {status.version}" for status in started)
        _say(f"started {names}; they stay until `manage.py services stop`")


def used_services() -> list[str]:
    """Names of the embedded services that the settings use."""
    wanted = {"postgresql": settings.EMBEDDED_DATABASE, "valkey": settings.EMBEDDED_REDIS}
    return [name for name, is_wanted in wanted.items() if is_wanted]


def ensure_database(command: str) -> None:
    """Check an external server, or migrate the embedded database. Raises UnusableDatabaseError."""
    name = get_commands().get(command, "")
    config = apps.get_containing_app_config(name) if isinstance(name, str) else None
    owner = config.label if config else str(name)
    needs_tables = command not in WITHOUT_MIGRATION and (
        command in NEED_TABLES or owner in OWN_APPS
    )
    if not settings.EMBEDDED_DATABASE:
        migrates = command in {"migrate", "restore", "upgrade"}
        check_server(to_migrate=needs_tables or migrates, migrates=migrates, say=_say)
    if not needs_tables or not (count := pending_migrations()):
        return
    if not settings.EMBEDDED_DATABASE:
        raise UnusableDatabaseError(
            f"The database of DATABASE_URL lacks {pluralized(count, 'migration')}: run"
            " `manage.py migrate` for a new one, `manage.py upgrade` for an earlier release's."
        )
    with migration_lock():
        if count := pending_migrations():  # another command may have applied them meanwhile
            _say(f"applying {pluralized(count, 'migration')}")
            call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr)


def _say(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr)  # noqa: T201


def _fail(what: str) -> NoReturn:
    _say(what)
    sys.exit(2)
