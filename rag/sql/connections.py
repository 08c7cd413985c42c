"""Connections to catalogued databases: opened to checked addresses, by roles that only read. Begin
with `open_connection` and `read_role`."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from django.utils.translation import gettext
from psycopg import Connection

from common import encryption
from common.errors import RagsiteError
from common.sql import release_connection
from common.text import truncated
from rag.models import DatabaseConnection
from rag.sql.options import DEFAULT_PORT, DatabasePlace
from reading.web_fetch import FetchError, checked_addresses, is_public, resolve_host

CONNECT_SECONDS = 5
#: Of what a server says.
MAX_MESSAGE_CHARACTERS = 300


class DatabaseUnavailable(RagsiteError):
    """The database cannot be asked now; the message says why and holds no password."""

    code = "database_unavailable"
    status = 424


class RoleMayWrite(RagsiteError):
    """The role of a connection may do more than read."""

    code = "role_may_write"
    status = 409


def encrypted_password(password: str) -> bytes:
    """For the database; empty where there is none."""
    return encryption.encrypt(password.encode()) if password else b""


def decrypted_password(connection: DatabaseConnection) -> str:
    """Raises UnreadableSecret, such as after a restore without the key."""
    if not connection.credentials:
        return ""
    try:
        return encryption.decrypt(connection.credentials).decode()
    except encryption.UnreadableSecret as error:
        raise encryption.UnreadableSecret(
            gettext(
                "The password of this connection was encrypted with another key. Add that key to"
                " RAGSITE_CREDENTIALS_KEYS, or enter the password again."
            )
        ) from error


def server_message(error: psycopg.Error) -> str:
    """What the server said, on one line."""
    said = error.diag.message_primary or str(error)
    return truncated(" ".join(said.split()), MAX_MESSAGE_CHARACTERS)


@contextmanager
def open_connection(connection: DatabaseConnection) -> Iterator[Connection[Any]]:
    """An open transaction that reads, sees one state, and is rolled back. Statements take no longer
    than the connection allows, and find functions of the system alone. No connection of the site's
    own database is held meanwhile. Raises DatabaseUnavailable and UnreadableSecret."""
    password = decrypted_password(connection)
    place = DatabasePlace.read(connection.address)
    release_connection()
    opened = _connect(connection, place, password)
    try:
        opened.read_only = True
        opened.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        milliseconds = connection.seconds * 1000
        for name, value in (
            ("statement_timeout", f"{milliseconds}"),
            ("lock_timeout", "1000"),
            ("idle_in_transaction_session_timeout", f"{2 * milliseconds}"),
            ("search_path", "pg_catalog"),
            ("work_mem", "16MB"),
            ("max_parallel_workers_per_gather", "0"),
            ("row_security", "on"),
        ):
            opened.execute("SELECT pg_catalog.set_config(%s, %s, true)", [name, value])
        yield opened
    except psycopg.OperationalError as error:
        if isinstance(error, psycopg.errors.QueryCanceled):
            raise
        raise unavailable(connection, server_message(error)) from error
    finally:
        opened.close()


def _connect(
    connection: DatabaseConnection, place: DatabasePlace, password: str
) -> Connection[Any]:
    parameters: dict[str, Any] = {
        "dbname": place.database,
        "user": connection.username,
        "password": password,
        "port": place.port or DEFAULT_PORT,
        "connect_timeout": CONNECT_SECONDS,
        "application_name": "ragsite",
        "client_encoding": "utf8",
        "gssencmode": "disable",
        # Nothing of the site's own environment.
        "passfile": os.devnull,
        "options": "",
    }
    if place.socket_dir:
        return _open_connection(connection, {**parameters, "host": place.socket_dir})
    parameters |= {"host": place.host, "sslmode": connection.encryption, "tcp_user_timeout": 30_000}
    if connection.encryption == DatabaseConnection.Encryption.VERIFY:
        parameters["sslrootcert"] = "system"
    failed: DatabaseUnavailable | None = None
    for address in _addresses(connection, place):
        try:
            # By the number that was checked: the name is not resolved again.
            return _open_connection(connection, {**parameters, "hostaddr": address})
        except DatabaseUnavailable as error:
            failed = error
    assert failed is not None  # there is an address
    raise failed


def _addresses(connection: DatabaseConnection, place: DatabasePlace) -> Sequence[str]:
    """Those of the host; for all but the operator's connections they must be public."""
    port = place.port or DEFAULT_PORT
    try:
        return checked_addresses(
            place.host,
            port,
            resolve=resolve_host,
            is_allowed=(lambda address: True) if connection.by_operator else is_public,
        )
    except FetchError as error:
        if error.code != "forbidden_address":
            raise DatabaseUnavailable(str(error)) from error
        raise DatabaseUnavailable(
            gettext(
                "{host} leads into the site's own network. Only the operator of the site connects"
                " databases there."
            ).format(host=place.host)
        ) from error


def _open_connection(connection: DatabaseConnection, parameters: dict[str, Any]) -> Connection[Any]:
    try:
        return psycopg.connect(**parameters)
    except psycopg.Error as error:
        raise unavailable(connection, server_message(error)) from error


def unavailable(connection: DatabaseConnection, reason: str) -> DatabaseUnavailable:
    """The error that the database cannot be asked, for a reason of its server's."""
    label = DatabasePlace.read(connection.address).label
    return DatabaseUnavailable(
        gettext("{database} cannot be asked: {reason}").format(database=label, reason=reason)
    )


@dataclass(frozen=True, slots=True)
class RoleReport:
    """What the role of a connection is. `powers` are what it may do besides reading; `warnings` say
    that it reads more than it is likely to need."""

    server_version: str
    powers: tuple[str, ...]
    warnings: tuple[str, ...]


#: Roles of the system that do more than read tables.
_POWERFUL_ROLES = (
    *("pg_write_all_data", "pg_execute_server_program", "pg_write_server_files"),
    *("pg_read_server_files", "pg_signal_backend", "pg_maintain", "pg_create_subscription"),
    "pg_checkpoint",
)
_ROLES = "SELECT oid, rolname FROM pg_roles WHERE pg_has_role(current_user, oid, 'MEMBER')"
_ATTRIBUTES = f"""
    SELECT coalesce(bool_or(r.rolsuper), false), coalesce(bool_or(r.rolcreaterole), false),
        coalesce(bool_or(r.rolcreatedb), false), coalesce(bool_or(r.rolreplication), false),
        coalesce(bool_or(r.rolbypassrls), false),
        coalesce(bool_or(r.rolname = 'pg_read_all_data'), false),
        coalesce(array_agg(r.rolname::text ORDER BY r.rolname)
            FILTER (WHERE r.rolname = ANY(%s)), '{{}}'),
        current_setting('server_version')
    FROM pg_roles AS r JOIN ({_ROLES}) AS own USING (oid)
"""  # noqa: S608 (constants)
#: What it may write, create in, or owns; also by a role that it may take.
_WRITABLE = f"""
    WITH own AS ({_ROLES})
    SELECT format('%%I.%%I', n.nspname, c.relname)
    FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace CROSS JOIN own
    WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
        AND CASE WHEN c.relowner = own.oid THEN true
            WHEN c.relkind = 'S' THEN has_sequence_privilege(own.oid, c.oid, 'USAGE, UPDATE')
            WHEN c.relkind IN ('r', 'p', 'v', 'm', 'f') THEN
                has_table_privilege(own.oid, c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')
                OR has_any_column_privilege(own.oid, c.oid, 'INSERT, UPDATE')
            ELSE false END
    UNION
    SELECT format('schema %%I', n.nspname) FROM pg_namespace AS n CROSS JOIN own
    WHERE n.nspname !~ '^pg_' AND n.nspname <> 'information_schema'
        AND (n.nspowner = own.oid OR has_schema_privilege(own.oid, n.oid, 'CREATE'))
    UNION
    SELECT format('database %%I', d.datname) FROM pg_database AS d CROSS JOIN own
    WHERE d.datname = current_database()
        AND (d.datdba = own.oid OR has_database_privilege(own.oid, d.oid, 'CREATE'))
    ORDER BY 1 LIMIT %s
"""  # noqa: S608 (constants)
MAX_NAMED = 5


def read_role(opened: Connection[Any]) -> RoleReport:
    """What the role of an open connection may do. Raises psycopg.Error."""
    row = opened.execute(_ATTRIBUTES, [list(_POWERFUL_ROLES)]).fetchone()
    assert row is not None  # an aggregate
    is_super, makes_roles, makes_databases, replicates, sees_all, reads_all, roles, version = row
    powers = [
        told
        for holds, told in (
            (is_super, gettext("it is a superuser")),
            (makes_roles, gettext("it may create roles")),
            (makes_databases, gettext("it may create databases")),
            (replicates, gettext("it may replicate the server")),
        )
        if holds
    ]
    powers += [gettext("it is a member of {role}").format(role=role) for role in roles]
    if not is_super:  # who may write everything
        names = [name for (name,) in opened.execute(_WRITABLE, [MAX_NAMED + 1]).fetchall()]
        more = ", …" if len(names) > MAX_NAMED else ""
        if names:
            listed = ", ".join(names[:MAX_NAMED]) + more
            powers.append(gettext("it may write or owns {names}").format(names=listed))
    warnings = [
        told
        for holds, told in (
            (sees_all, gettext("The role is not subject to row-level security.")),
            (reads_all, gettext("The role reads every table of the server.")),
        )
        if holds and not is_super
    ]
    return RoleReport(str(version), tuple(powers), tuple(warnings))


def require_reader(connection: DatabaseConnection, report: RoleReport) -> None:
    """Raises RoleMayWrite, with what to do."""
    if report.powers:
        raise RoleMayWrite(
            gettext(
                "The role “{role}” may do more than read: {powers}. Make one that only reads:"
                " CREATE ROLE … LOGIN; GRANT USAGE ON SCHEMA … TO …; GRANT SELECT ON … TO …."
            ).format(role=connection.username, powers="; ".join(report.powers))
        )
