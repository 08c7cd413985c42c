"""The role that runs SQL of language models: it has no rights but to read the views that are made
for one question. Made after each migration; without it no model is asked (docs/decisions/0097)."""

from collections.abc import Sequence
from math import inf
from time import monotonic
from typing import Any

from django.apps import AppConfig
from django.core.checks import CheckMessage, Tags, Warning, register
from django.db import connections
from django.db.models.signals import post_migrate

from common.rls import CAN_SET_ROLE, ROLE_CACHE_SECONDS, bypass_rls, ensure_role

#: Named after the login, as that of requests: roles are a server's, and sites must not share one.
ROLE_NAME = "left(current_user::text, 56) || '_tables'"
# One that could read a table would be no fence.
_READER_ROLE = f"""
    SELECT quote_ident(rolname)
    FROM pg_roles
    WHERE rolname = {ROLE_NAME} AND {CAN_SET_ROLE}
      AND NOT (rolsuper OR rolbypassrls OR rolcanlogin OR rolcreaterole OR rolcreatedb)
      AND has_database_privilege(oid, current_database(), 'TEMPORARY')
      AND NOT has_table_privilege(oid, to_regclass('tables_columnblock'), 'SELECT')
      AND NOT has_table_privilege(oid, to_regclass('accounts_workspace'), 'SELECT')
"""  # noqa: S608 (constants)
#: Role by alias of its server in this process, and until when it is remembered.
_roles: dict[str, tuple[str, float]] = {}


def reader_role(connection: Any) -> str:
    """The quoted role on the server of this connection; empty where there is none to be used."""
    server = connection.server_alias
    role, until = _roles.get(server, ("", 0.0))
    if monotonic() >= until:
        with bypass_rls(), connection.cursor() as cursor:  # reads the server's catalogue
            cursor.execute(_READER_ROLE)
            row = cursor.fetchone()
        role = row[0] if row else ""
        _roles[server] = role, inf if role else monotonic() + ROLE_CACHE_SECONDS
    return role


def forget_reader_role(connection: Any) -> None:
    """Forget what is remembered: the role may have been made or dropped."""
    _roles.pop(connection.server_alias, None)


def set_up() -> None:
    """Make the role after each migration, and check that it is there."""
    post_migrate.connect(_after_migration, dispatch_uid="tables.sql.role")
    register(check_role, Tags.database)


def _after_migration(sender: AppConfig, using: str = "default", **kwargs: Any) -> None:
    if sender.name == "tables":
        ensure_role(connections[using], ROLE_NAME)
        forget_reader_role(connections[using])


def check_role(*, databases: Sequence[str] | None = None, **kwargs: Any) -> list[CheckMessage]:
    """W001: SQL of language models has no role, so that none is run."""
    messages: list[CheckMessage] = []
    for alias in databases or ():
        with connections[alias].cursor() as cursor:
            cursor.execute(
                f"SELECT current_user, {ROLE_NAME}, to_regclass('tables_columnblock') IS NOT NULL"
            )
            login, role, is_migrated = cursor.fetchone()
        if is_migrated and not reader_role(connections[alias]):
            messages.append(
                Warning(
                    "Language models are not asked about tables: the role that would run their SQL"
                    " is missing.",
                    hint=f'Run once as a superuser: CREATE ROLE "{role}" NOLOGIN;'
                    f' GRANT "{role}" TO "{login}"; it needs the privilege TEMPORARY of the'
                    " database, and none of any table.",
                    id="tables.W001",
                )
            )
    return messages
