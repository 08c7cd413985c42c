"""The fence of the work at hand as SQL that goes before a statement."""

from typing import Any

from common import fence

#: Before a statement outside every fence, in a transaction that an earlier one may have fenced.
LIFT = "SET LOCAL ROLE NONE; "

#: The role of a login in a database, where it is there and the login may take it.
_ROLE = """
    SELECT quote_ident(rolname)
    FROM pg_roles
    WHERE rolname = left(current_user::text, 58) || '_site'
      -- since PostgreSQL 16 one may be a member who cannot take the role
      AND pg_has_role(current_user, oid, CASE WHEN current_setting('server_version_num')::int
                                                   >= 160000 THEN 'SET' ELSE 'MEMBER' END)
      AND has_table_privilege(oid, to_regclass('accounts_workspace'), 'SELECT')
"""
#: By alias, in this process.
_roles: dict[str, str] = {}


def prefix(connection: Any) -> str:
    """What goes before a statement: nothing outside every fence, and where row-level security is
    not set up (`common.W003` says so)."""
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
    known = _roles.get(connection.alias)
    if known is None:
        with fence.unfenced(), connection.cursor() as cursor:
            cursor.execute(_ROLE)
            row = cursor.fetchone()
        known = row[0] if row else ""
        if known:  # else it may come yet, with a migration
            _roles[connection.alias] = known
    return known
