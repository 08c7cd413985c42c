"""The database of a backup: how it is reached by us and by PostgreSQL's own programs."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db.backends.base.base import BaseDatabaseWrapper
from psycopg.conninfo import make_conninfo

from ragsite.backup.errors import BackupError

Connection = psycopg.Connection[tuple[Any, ...]]

_OPTIONS = frozenset(option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults())
#: So that a value's text is the same whoever asks, wherever, and that no policy leaves rows out:
#: with `row_security` off PostgreSQL refuses where one would.
_SETTINGS = (
    "SET search_path = public",
    "SET timezone = 'UTC'",
    "SET datestyle = 'ISO, YMD'",
    "SET intervalstyle = 'iso_8601'",
    "SET bytea_output = 'hex'",
    "SET extra_float_digits = 1",
    "SET row_security = off",
    "SET statement_timeout = 0",
    "SET idle_in_transaction_session_timeout = 0",
    "SET idle_session_timeout = 0",
)


@dataclass(frozen=True, slots=True)
class Server:
    """A database, by what libpq wants to know of it. The password goes by the environment, where
    no list of processes shows it."""

    options: Mapping[str, str]

    @classmethod
    def of(cls, connection: BaseDatabaseWrapper) -> "Server":
        """The one of a connection of Django's."""
        given = connection.get_connection_params()
        options = {name: str(given[name]) for name in sorted(_OPTIONS.intersection(given))}
        return cls({**options, "application_name": "ragsite backup"})

    @property
    def name(self) -> str:
        return self.options.get("dbname", "")

    @property
    def address(self) -> str:
        """What the programs take as `--dbname`: without the password."""
        return make_conninfo(**{k: v for k, v in self.options.items() if k != "password"})

    def environment(self) -> dict[str, str]:
        """For the programs: theirs in English, and with the password."""
        ours = {**os.environ, "LC_ALL": "C.UTF-8"}
        if password := self.options.get("password"):
            ours["PGPASSWORD"] = password
        return ours

    def connect(self) -> Connection:
        """A connection of its own, in which each statement commits. Raises BackupError."""
        try:
            connection = psycopg.connect(make_conninfo(**self.options), autocommit=True)
            for statement in _SETTINGS:
                connection.execute(statement)
        except psycopg.Error as error:
            said = str(error).strip().splitlines()[0]
            raise BackupError(f"The database cannot be reached: {said}") from error
        return connection
