"""Before a command of manage.py runs: services up, database reachable, migrations applied.

So that every command works right after `make setup`. Whatever is said goes to stderr, because
the commands' stdout may be JSON. Nothing here happens when settings are merely imported.
"""

import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

import django
from django.apps import apps
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command, get_commands

from common.postgresql.base import StatementTimeout
from common.postgresql.fencing import limit_command
from common.wording import counted
from ragsite import embedded
from ragsite.database import (
    UnusableDatabaseError,
    check_server,
    check_urls,
    migration_lock,
    pending,
)
from ragsite.environment import load_env_file

# These need no database, and some run where there can be none, as in an image's build.
EXEMPT = frozenset(
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
# Their tables must be there; so must those of every command of our own apps.
NEED_TABLES = frozenset({"runserver", "shell", "createsuperuser", "changepassword"})
# They take the database as it is: empty, or with the tables of an earlier version.
AS_IT_IS = frozenset({"backup", "restore"})
#: Their statements are limited as those of requests are.
SHORT = frozenset({"apikeys", "ask", "runs", "search", "stats"})
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
        "inference",
        "common",
    }
)


def prepare(argv: Sequence[str]) -> None:
    """Make ready what the command in `argv` needs; exits with code 2 and the cure if it cannot."""
    command = next((word for word in argv[1:] if not word.startswith("-")), "help")
    try:
        load_env_file()
        if command in EXEMPT or _HELP_OPTIONS.intersection(argv):
            _ = settings.VAR_DIR
            return
        check_urls(os.environ)
        ensure_services()
        django.setup()
        if command in SHORT:
            limit_command()
        ensure_database(command)
        _say_who_acts()
    except (embedded.ServiceError, UnusableDatabaseError, CommandError) as error:
        _fail(str(error))
    except ImproperlyConfigured as error:
        _fail(f"The settings cannot be used: {error}")


def run(execute: Callable[[list[str]], None], argv: list[str]) -> None:
    """Run the command; a statement that took too long is one sentence and exit code 2."""
    try:
        execute(argv)
    except StatementTimeout as error:
        _fail(str(error))


def ensure_services() -> None:
    """Start the embedded servers that the settings ask for, unless they answer already."""
    used = used_services()
    if embedded.answering(settings.VAR_DIR, only=used):
        return
    started = [s for s in embedded.start(settings.VAR_DIR, only=used) if s.detail == "started"]
    if started:
        names = " and ".join(f"{status.name} {status.version}" for status in started)
        _say(f"started {names}; they stay until `manage.py services stop`")


def used_services() -> list[str]:
    """Names of the embedded services that the settings do not replace by servers of one's own."""
    wanted = {"postgresql": settings.EMBEDDED_DATABASE, "valkey": settings.EMBEDDED_REDIS}
    return [name for name, is_wanted in wanted.items() if is_wanted]


def ensure_database(command: str) -> None:
    """Check a server of one's own, and bring the embedded database's tables up to date.

    Raises UnusableDatabaseError.
    """
    needs_tables = command not in AS_IT_IS and (
        command in NEED_TABLES or _owner(command) in OWN_APPS
    )
    if not settings.EMBEDDED_DATABASE:
        migrates = command in {"migrate", "restore"}
        check_server(to_migrate=needs_tables or migrates, migrates=migrates, say=_say)
    if not needs_tables or not (count := pending()):
        return
    if not settings.EMBEDDED_DATABASE:
        raise UnusableDatabaseError(
            f"The database of DATABASE_URL lacks {counted(count, 'migration')}: run"
            " `manage.py migrate`."
        )
    with migration_lock():
        if count := pending():  # another command may have applied them meanwhile
            _say(f"applying {counted(count, 'migration')}")
            call_command("migrate", interactive=False, verbosity=0, stdout=sys.stderr)


def _owner(command: str) -> str:
    name = get_commands().get(command, "")
    config = apps.get_containing_app_config(name) if isinstance(name, str) else None
    return config.label if config else str(name)


def _say_who_acts() -> None:
    """To the history. Threads begin anew: what a server does there, its callers do."""
    from accounts.history import Door, set_actor  # noqa: PLC0415 (has models)

    set_actor(door=Door.COMMAND)


def _say(what: str) -> None:
    print(f"ragsite: {what}", file=sys.stderr)  # noqa: T201


def _fail(what: str) -> NoReturn:
    _say(what)
    sys.exit(2)
