"""Row-level security of every table that a workspace owns, set up after each migration.

A table belongs to a workspace by its column `workspace_id`; the table of workspaces by its own id.
So a new model is fenced as soon as it is migrated, and tests/test_row_security.py looks at the
database for one that is not.
"""

import logging
from typing import Any

from django.apps import AppConfig, apps
from django.db import DatabaseError, connections, transaction
from psycopg import sql

from common.fence import SETTING
from common.postgresql.fencing import MAY_TAKE, ROLE_NAME, look_again

#: Of each policy.
POLICY = "workspace"
#: Tables that requests never touch. The admin, which does, works unfenced.
CLOSED = ("django_admin_log",)

logger = logging.getLogger(__name__)

_LACKING = f"""
    SELECT c.oid::regclass::text, own.col
    FROM unnest(%s::text[], %s::text[]) AS own (name, col)
    JOIN pg_class AS c ON c.oid = to_regclass(quote_ident(own.name))
    WHERE NOT c.relrowsecurity
       OR NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = '{POLICY}')
"""  # noqa: S608 (a constant)
_ROLE = f"SELECT {ROLE_NAME}"
_MEMBER = f"SELECT {MAY_TAKE} FROM pg_roles WHERE rolname = %s"  # noqa: S608 (a constant)
#: Tables of the schema that the role cannot write yet, leaving out those that it may not.
_UNGRANTED = """
    SELECT count(*)
    FROM pg_class AS c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
      AND c.relname <> ALL(%s)
      AND NOT has_table_privilege(%s, c.oid, 'INSERT')
"""


def connect() -> None:
    """Have it set up once all apps are migrated."""
    from django.db.models.signals import post_migrate  # noqa: PLC0415 (as the app is ready)

    post_migrate.connect(_after_migration, dispatch_uid="common.row_security")


def _after_migration(sender: AppConfig, using: str = "default", **kwargs: Any) -> None:
    if sender.name == "common":
        secure(using=using)


def owned() -> dict[str, str]:
    """The column that says the workspace, by table, of every model that has one."""
    tables = {
        model._meta.db_table: "workspace_id"
        for model in apps.get_models(include_auto_created=True)
        if any(field.column == "workspace_id" for field in model._meta.local_concrete_fields)
    }
    return {**tables, apps.get_model("accounts", "Workspace")._meta.db_table: "id"}


def secure(*, using: str = "default") -> None:
    """Make the role, the policies and the grants that are missing; doing it again changes nothing.

    Where this login may not make a role, the policies are there and bind nobody: the check
    common.W003 tells what to run.
    """
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        tables = owned()
        cursor.execute(_LACKING, [list(tables), list(tables.values())])
        for table, column in cursor.fetchall():
            _fence(cursor, table, column)
    role = _role(connection)
    if role is None:
        return
    with transaction.atomic(using=using), connection.cursor() as cursor:
        cursor.execute(_UNGRANTED, [list(CLOSED), role])
        if cursor.fetchone()[0]:
            _grant(cursor, role)
    look_again(connection)


def _fence(cursor: Any, table: str, column: str) -> None:
    """Show rows of the workspaces that the statement names. Not FORCEd: docs/decisions/0045."""
    cursor.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
    cursor.execute(f"DROP POLICY IF EXISTS {POLICY} ON {table}")
    # In a subquery of its own it is read once a statement, not once a row; the cast around it only
    # tells the parser that the subquery is an array, not rows.
    ids = f"string_to_array(current_setting('{SETTING}', true), ',')::bigint[]"
    named = f"(SELECT {ids})::bigint[]"
    cursor.execute(f"CREATE POLICY {POLICY} ON {table} USING ({column} = ANY({named}))")


def _role(connection: Any) -> str | None:
    """The role that requests run as, made where it can be; None where this login cannot take it."""
    with connection.cursor() as cursor:
        cursor.execute(_ROLE)
        role: str = cursor.fetchone()[0]
        cursor.execute(_MEMBER, [role])
        found = cursor.fetchone()
        if found and found[0]:
            return role
        quoted = sql.Identifier(role)
        steps = [] if found else [sql.SQL("CREATE ROLE {} NOLOGIN").format(quoted)]
        steps.append(sql.SQL("GRANT {} TO CURRENT_USER").format(quoted))
        problem = ""
        for step in steps:
            try:
                with transaction.atomic(using=connection.alias):
                    cursor.execute(step)
            except DatabaseError as error:  # or another process was quicker
                problem = problem or str(error).splitlines()[0]
        cursor.execute(_MEMBER, [role])
        found = cursor.fetchone()
    if found and found[0]:
        return role
    logger.warning("row-level security is not in force: %s", problem)
    return None


def _grant(cursor: Any, role: str) -> None:
    cursor.execute("SELECT current_schema()")
    schema, quoted = sql.Identifier(cursor.fetchone()[0]), sql.Identifier(role)
    for statement in (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    ):
        cursor.execute(sql.SQL(statement).format(schema=schema, role=quoted))
    for table in CLOSED:
        cursor.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(sql.Identifier(table), quoted))
