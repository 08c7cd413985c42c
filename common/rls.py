"""Row-level security: which workspaces PostgreSQL shows to the current request
(docs/decisions/0045), and which collections to an API key that is limited to some (0074).

Begin with `WorkspaceContext` and `workspace_context`; `rls_prefix` is the SQL put before each
statement, `secure_tables` creates role, policies and grants after each migration. Pages and the API
also filter by `visible_to(user)`; this second check applies when that filter was forgotten.
"""

import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from math import inf
from time import monotonic
from typing import Any, TypeVar

from django.apps import AppConfig, apps
from django.conf import settings
from django.db import DatabaseError, connections, transaction
from psycopg import sql

from common.errors import Forbidden
from common.shards import current_choice, resume_choice

T = TypeVar("T")

#: The setting that policies read: ids of workspaces with commas between them.
WORKSPACES_SETTING = "ragsite.workspace"
#: Likewise of ids of collections; empty for all.
COLLECTIONS_SETTING = "ragsite.collections"

FindWorkspaces = Callable[[], Iterable[int] | None]


class WorkspaceContext:
    """The workspaces visible to a piece of work, looked up when the first statement needs them.

    `find()` runs with row-level security bypassed, because the user is looked up in the database
    too. If it returns None, everything is visible. `collections` are the only ones to be visible;
    None is all of the workspaces.
    """

    __slots__ = ("_find", "_workspaces", "choice", "collection_ids")

    def __init__(self, find: FindWorkspaces, *, collections: frozenset[int] | None = None) -> None:
        self._find: FindWorkspaces | None = find
        self._workspaces: frozenset[int] | None = None
        self.collection_ids = collections
        #: The shard of the work that it was made for.
        self.choice = current_choice()

    @property
    def workspace_ids(self) -> frozenset[int] | None:
        """Ids of the visible workspaces; None for all."""
        if self._find is not None:
            with bypass_rls():
                found = self._find()
            # The lookup of the user may have restricted it in the meantime.
            if self._find is not None:
                self.show(found)
        return self._workspaces

    def show(self, workspaces: Iterable[int] | None) -> None:
        """Restrict the context to these workspaces from now on; None for all."""
        self._workspaces = None if workspaces is None else frozenset(workspaces)
        self._find = None


#: Context of work without one of its own: everything for commands and workers, nothing in a web
#: server.
_default_context: WorkspaceContext | None = None
_current: ContextVar[WorkspaceContext | None] = ContextVar("workspace_context", default=None)
_bypassed: ContextVar[bool] = ContextVar("rls_bypassed", default=False)


def current_context() -> WorkspaceContext | None:
    """The current context; None where there is none."""
    if _bypassed.get():
        return None
    return _current.get() or _default_context


def has_context() -> bool:
    """Whether the current work answers a request, even while row-level security is bypassed."""
    return (_current.get() or _default_context) is not None


@contextmanager
def use_context(context: WorkspaceContext) -> Iterator[None]:
    """Within the block, PostgreSQL shows only the workspaces of `context`, on their shard."""
    before, bypassed = _current.get(), _bypassed.get()
    _current.set(context)
    _bypassed.set(False)
    try:
        with resume_choice(context.choice):
            yield
    finally:
        # Not by their tokens: a request may end in another context than it began in.
        _current.set(before)
        _bypassed.set(bypassed)


@contextmanager
def workspace_context(
    *workspaces: int, collections: frozenset[int] | None = None
) -> Iterator[None]:
    """Within the block, PostgreSQL shows only these workspaces, and of them only `collections`, if
    given; without, those that were visible before."""
    within = current_collections() if collections is None else collections
    with use_context(WorkspaceContext(lambda: workspaces, collections=within)):
        yield


def current_collections() -> frozenset[int] | None:
    """The collections that the current work is limited to, also while row-level security is
    bypassed; None for all."""
    context = _current.get() or _default_context
    return None if context is None else context.collection_ids


@contextmanager
def bypass_rls() -> Iterator[None]:
    """Within the block, PostgreSQL shows everything: for looking up the user, and for statements
    that name their workspaces themselves and return ids only. Say why where you use it.
    """
    before = _bypassed.get()
    _bypassed.set(True)
    try:
        yield
    finally:
        _bypassed.set(before)


def restrict_workspaces(
    workspaces: Iterable[int] | None, *, collections: Iterable[int] = ()
) -> None:
    """Show only these workspaces for the rest of the current work, if it has a context, and of them
    only `collections`, if there are any."""
    context = _current.get()
    if context is not None:
        context.show(workspaces)
        context.collection_ids = frozenset(collections) or None


def deny_by_default() -> None:
    """Show nothing to work in this process without a context of its own: a thread that has lost its
    request's context must find nothing, not everything.
    """
    global _default_context  # noqa: PLW0603 (one state of the process)
    _default_context = WorkspaceContext(tuple)


def iterate_within(context: WorkspaceContext, parts: Iterable[T]) -> Iterator[T]:
    """`parts`, each produced within the context: a stream continues after its request was
    answered.
    """
    iterator = iter(parts)
    while True:
        with use_context(context):
            try:
                part = next(iterator)
            except StopIteration:
                return
        yield part


#: Before a statement without a context, in a transaction where an earlier one may have set a role.
RESET_ROLE = "SET LOCAL ROLE NONE; "
#: The same of a statement without a limit.
RESET_TIMEOUT = "SET LOCAL statement_timeout = DEFAULT; "
#: The same of a statement that may see all collections.
RESET_COLLECTIONS = f"SET LOCAL {COLLECTIONS_SETTING} = ''; "

#: Name of the role of a login: roles are a server's, and two sites must not share one.
ROLE_NAME = "left(current_user::text, 58) || '_site'"
#: Since PostgreSQL 16 one may be a member who cannot take the role.
CAN_SET_ROLE = (
    "pg_has_role(current_user, oid, CASE WHEN current_setting('server_version_num')::int >= 160000"
    " THEN 'SET' ELSE 'MEMBER' END)"
)
_ROLE_QUERY = f"""
    SELECT quote_ident(rolname)
    FROM pg_roles
    WHERE rolname = {ROLE_NAME}
      AND {CAN_SET_ROLE}
      AND has_table_privilege(oid, to_regclass('accounts_workspace'), 'SELECT')
"""  # noqa: S608 (constants)
#: A missing role is looked up again after this time: a migration may create it.
ROLE_CACHE_SECONDS = 30.0
#: Role by alias of its server in this process, and until when it is cached.
_roles: dict[str, tuple[str, float]] = {}


#: Whether statements without a context are limited too: those of a short command.
_limits_commands = False


def limit_statements() -> None:
    """Limit each statement of this process to RAGSITE_DATABASE_STATEMENT_SECONDS."""
    global _limits_commands  # noqa: PLW0603 (one state of the process)
    _limits_commands = True


def timeout_prefix() -> str:
    """The time limit as a setting of the transaction: with PgBouncer a session is shared."""
    seconds: float = settings.DATABASE_STATEMENT_SECONDS
    if seconds <= 0 or not (_limits_commands or has_context()):
        return ""
    return f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}; "


def rls_prefix(connection: Any) -> str:
    """SQL that sets role and workspaces; empty without a context, and where row-level security is
    not set up (check `common.W003`).
    """
    current = current_context()
    if current is None:
        return ""
    workspaces = current.workspace_ids
    if workspaces is None:
        return ""
    role = request_role(connection)
    if not role:
        if current.collection_ids is not None:
            raise CannotLimit
        return ""
    ids = ",".join(map(str, sorted(workspaces)))
    prefix = f"SET LOCAL ROLE {role}; SET LOCAL {WORKSPACES_SETTING} = '{ids}'; "
    if current.collection_ids is not None:
        ids = ",".join(map(str, sorted(current.collection_ids)))
        prefix += f"SET LOCAL {COLLECTIONS_SETTING} = '{ids}'; "
    return prefix


class CannotLimit(Forbidden):
    """Row-level security is not in force, which alone limits a key to collections."""

    code = "key_not_limited"

    def __init__(self) -> None:
        super().__init__(
            "This API key is limited to collections, which the database of this site cannot ensure:"
            " check common.W003 of `manage.py check --database default` says why."
        )


def request_role(connection: Any) -> str:
    """The quoted role of request statements; empty where there is none."""
    server = connection.server_alias
    role, until = _roles.get(server, ("", 0.0))
    if monotonic() < until:
        return role
    with bypass_rls(), connection.cursor() as cursor:
        cursor.execute(_ROLE_QUERY)
        row = cursor.fetchone()
    role = row[0] if row else ""
    _roles[server] = role, inf if role else monotonic() + ROLE_CACHE_SECONDS
    return role


def forget_role(connection: Any) -> None:
    """Forget the cached role: it may have been created or dropped."""
    _roles.pop(connection.server_alias, None)


#: Names of the policies: of tables with a workspace, and of those with a collection.
POLICY_NAME, COLLECTION_POLICY_NAME = "workspace", "collection"
#: Tables that requests never touch. The admin, which does, bypasses row-level security.
HIDDEN_TABLES = ("django_admin_log",)

logger = logging.getLogger(__name__)

_WITHOUT_POLICY = """
    SELECT c.oid::regclass::text, own.col
    FROM unnest(%s::text[], %s::text[]) AS own (name, col)
    JOIN pg_class AS c ON c.oid = to_regclass(quote_ident(own.name))
    WHERE NOT c.relrowsecurity
       OR NOT EXISTS (SELECT FROM pg_policy WHERE polrelid = c.oid AND polname = %s)
"""
_CAN_SET_ROLE_QUERY = f"SELECT {CAN_SET_ROLE} FROM pg_roles WHERE rolname = %s"  # noqa: S608 (a constant)
#: Tables of the schema that the role cannot write yet, without the hidden ones.
_UNGRANTED = """
    SELECT count(*)
    FROM pg_class AS c
    WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind = 'r'
      AND c.relname <> ALL(%s)
      AND NOT has_table_privilege(%s, c.oid, 'INSERT')
"""


def secure_after_migrate() -> None:
    """Set it up after all apps are migrated."""
    from django.db.models.signals import post_migrate  # noqa: PLC0415 (as the app is ready)

    post_migrate.connect(_after_migration, dispatch_uid="common.rls")


def _after_migration(sender: AppConfig, using: str = "default", **kwargs: Any) -> None:
    if sender.name == "common":
        secure_tables(using=using)


def workspace_columns() -> dict[str, str]:
    """The workspace column of each table, for every model that has one."""
    tables = {
        model._meta.db_table: "workspace_id"
        for model in apps.get_models(include_auto_created=True)
        if any(field.column == "workspace_id" for field in model._meta.local_concrete_fields)
    }
    return {**tables, apps.get_model("accounts", "Workspace")._meta.db_table: "id"}


def collection_columns() -> dict[str, str]:
    """The collection column of each table whose rows all belong to a workspace and a collection."""
    collection: Any = apps.get_model("documents", "Collection")
    owned = workspace_columns()
    tables = {
        model._meta.db_table: str(field.column)
        for model in apps.get_models(include_auto_created=True)
        for field in model._meta.local_concrete_fields
        if field.related_model is collection and not field.null and model._meta.db_table in owned
    }
    return {**tables, collection._meta.db_table: "id"}


def secure_tables(*, using: str = "default") -> None:
    """Create the missing role, policies and grants; repeating it changes nothing.

    Where this login may not create a role, the policies exist but apply to nobody: check
    common.W003 says what to run.
    """
    connection = connections[using]
    with transaction.atomic(using=using), connection.cursor() as cursor:
        for name, kind, tables in (
            (POLICY_NAME, "", workspace_columns()),
            (COLLECTION_POLICY_NAME, "AS RESTRICTIVE", collection_columns()),
        ):
            cursor.execute(_WITHOUT_POLICY, [list(tables), list(tables.values()), name])
            for table, column in cursor.fetchall():
                # Not FORCEd: docs/decisions/0045.
                cursor.execute(f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY")
                cursor.execute(f"DROP POLICY IF EXISTS {name} ON {table}")
                condition = _visible(column) if name == POLICY_NAME else _within(column)
                cursor.execute(f"CREATE POLICY {name} ON {table} {kind} USING ({condition})")
    role = ensure_role(connection)
    if role is None:
        logger.warning("row-level security is not in force")
        return
    with transaction.atomic(using=using), connection.cursor() as cursor:
        cursor.execute(_UNGRANTED, [list(HIDDEN_TABLES), role])
        if cursor.fetchone()[0]:
            _grant_role(cursor, role)
    forget_role(connection)


def _visible(column: str, setting: str = WORKSPACES_SETTING) -> str:
    """Whether the id in `column` is one of those set with the statement."""
    # In a subquery it is evaluated once a statement, not once a row; the cast only tells the parser
    # that the subquery returns an array.
    ids = f"string_to_array(current_setting('{setting}', true), ',')::bigint[]"
    return f"{column} = ANY((SELECT {ids})::bigint[])"


def _within(column: str) -> str:
    """The same of collections, where the statement is limited to some."""
    setting = f"current_setting('{COLLECTIONS_SETTING}', true)"
    return f"(SELECT coalesce({setting}, '') = '') OR {_visible(column, COLLECTIONS_SETTING)}"


def ensure_role(connection: Any, name: str = ROLE_NAME) -> str | None:
    """The role that the SQL expression `name` calls, by default that of requests, created where
    possible; None where this login cannot use it."""
    with connection.cursor() as cursor:
        cursor.execute(f"SELECT {name}")
        role: str = cursor.fetchone()[0]
        cursor.execute(_CAN_SET_ROLE_QUERY, [role])
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
        cursor.execute(_CAN_SET_ROLE_QUERY, [role])
        found = cursor.fetchone()
    if found and found[0]:
        return role
    logger.warning("the role %s cannot be used: %s", role, problem)
    return None


def _grant_role(cursor: Any, role: str) -> None:
    cursor.execute("SELECT current_schema()")
    schema, quoted = sql.Identifier(cursor.fetchone()[0]), sql.Identifier(role)
    for statement in (
        "GRANT USAGE ON SCHEMA {schema} TO {role}",
        "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}",
        "GRANT USAGE, SELECT ON ALL SEQUENCES IN SCHEMA {schema} TO {role}",
    ):
        cursor.execute(sql.SQL(statement).format(schema=schema, role=quoted))
    for table in HIDDEN_TABLES:
        cursor.execute(sql.SQL("REVOKE ALL ON {} FROM {}").format(sql.Identifier(table), quoted))
