"""What goes before a statement as SQL: the fence of the work at hand, and how long it may take."""

from math import inf
from time import monotonic
from typing import Any

from django.conf import settings

from common import fence

#: Before a statement outside every fence, in a transaction that an earlier one may have fenced.
LIFT = "SET LOCAL ROLE NONE; "
#: The same of a statement without a limit.
NO_LIMIT = "SET LOCAL statement_timeout = DEFAULT; "

#: What the role of a login is called: roles are a server's, and two sites must not share one.
ROLE_NAME = "left(current_user::text, 58) || '_site'"
#: Since PostgreSQL 16 one may be a member who cannot take the role.
MAY_TAKE = (
    "pg_has_role(current_user, oid, CASE WHEN current_setting('server_version_num')::int >= 160000"
    " THEN 'SET' ELSE 'MEMBER' END)"
)
_ROLE = f"""
    SELECT quote_ident(rolname)
    FROM pg_roles
    WHERE rolname = {ROLE_NAME}
      AND {MAY_TAKE}
      AND has_table_privilege(oid, to_regclass('accounts_workspace'), 'SELECT')
"""  # noqa: S608 (constants)
#: Where there is none it is looked for again after so many seconds: a migration may make it.
LOOK_AGAIN_SECONDS = 30.0
#: By alias, in this process: the role, and until when that holds.
_roles: dict[str, tuple[str, float]] = {}


#: Whether statements outside every fence are limited too: those of a short command.
_is_short_command = False


def limit_command() -> None:
    """Limit each statement of this process to RAGSITE_DATABASE_STATEMENT_SECONDS."""
    global _is_short_command  # noqa: PLW0603 (one state of the process)
    _is_short_command = True


def timeout_prefix() -> str:
    """The limit as a setting of the transaction, because a session belongs to others next where
    PgBouncer lends it."""
    seconds: float = settings.DATABASE_STATEMENT_SECONDS
    if seconds <= 0 or not (_is_short_command or fence.has_fence()):
        return ""
    return f"SET LOCAL statement_timeout = {max(1, round(seconds * 1000))}; "


def fence_prefix(connection: Any) -> str:
    """Role and workspaces: nothing outside every fence, and where row-level security is not set up
    (`common.W003` says so)."""
    current = fence.current()
    if current is None:
        return ""
    workspaces = current.workspaces
    if workspaces is None:
        return ""
    role = role_of(connection)
    if not role:
        return ""
    ids = ",".join(map(str, sorted(workspaces)))
    return f"SET LOCAL ROLE {role}; SET LOCAL {fence.SETTING} = '{ids}'; "


def role_of(connection: Any) -> str:
    """The role, quoted, that fenced statements run as; empty where there is none."""
    role, until = _roles.get(connection.alias, ("", 0.0))
    if monotonic() < until:
        return role
    with fence.unfenced(), connection.cursor() as cursor:
        cursor.execute(_ROLE)
        row = cursor.fetchone()
    role = row[0] if row else ""
    _roles[connection.alias] = role, inf if role else monotonic() + LOOK_AGAIN_SECONDS
    return role


def look_again(connection: Any) -> None:
    """Forget what was found: it may have been made, or taken away."""
    _roles.pop(connection.alias, None)
