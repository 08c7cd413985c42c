"""Connections on which queries over catalogued databases are run: made, changed, tried, removed,
and found for who asks. Begin with `connect_database`.

The operator of the site (a superuser) connects databases anywhere, an owner of the workspace those
of the public internet. What the operator has set, only the operator changes; an owner may switch it
off or remove it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.members import is_owner
from accounts.models import Workspace
from common.errors import Conflict, Forbidden, InvalidInput, NotFound
from documents.models import Collection
from documents.services.documents import checked_access
from rag.models import DatabaseConnection
from rag.sql.connections import (
    RoleReport,
    decrypted_password,
    encrypted_password,
    open_connection,
    read_role,
    require_reader,
    server_message,
    unavailable,
)
from rag.sql.options import DatabaseOptions

_UNSET: Any = object()

# --- rights --------------------------------------------------------------------------------------


def is_operator(user: Any) -> bool:
    """Whether `user` runs the site. None is the site itself, as for a command."""
    return user is None or bool(user.is_active and user.is_superuser)


def may_manage(*, user: Any, workspace: Workspace) -> bool:
    return is_operator(user) or is_owner(user=user, workspace=workspace)


def require_manager(*, user: Any, workspace: Workspace) -> None:
    """Raises Forbidden."""
    if not may_manage(user=user, workspace=workspace):
        raise Forbidden(
            gettext("Only owners of “{workspace}” may do this. Ask one of them.").format(
                workspace=workspace
            )
        )


def may_change(*, user: Any, connection: DatabaseConnection) -> bool:
    """Whether `user` may set where it leads, and not only switch it off."""
    return is_operator(user) or not connection.by_operator


def managed_connections(*, user: Any, workspace: Workspace) -> list[DatabaseConnection]:
    """The connections of the workspace, by name. Raises Forbidden."""
    require_manager(user=user, workspace=workspace)
    rows = DatabaseConnection.objects.filter(workspace=workspace)
    return list(rows.select_related("workspace", "collection"))


def managed_connection(*, user: Any, workspace: Workspace, pk: int) -> DatabaseConnection:
    """One of them. Raises Forbidden and NotFound."""
    for row in managed_connections(user=user, workspace=workspace):
        if row.pk == pk:
            return row
    raise NotFound(gettext("This connection does not exist, or you may not see it."))


# --- connections ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DatabaseTrial:
    """How a database answered, by a role that only reads."""

    server_version: str
    warnings: tuple[str, ...]


def connect_database(
    *,
    collection: Collection,
    options: DatabaseOptions,
    access: Sequence[str] | None = None,
    is_enabled: bool = True,
    user: Any = None,
) -> tuple[DatabaseConnection, DatabaseTrial]:
    """Keep a connection for the tables that are catalogued in `collection`, once it was tried.
    `access` are those who may run queries, None for all who see the tables. Raises InvalidInput,
    Conflict for a name or a database that is taken, and what `try_connection` raises."""
    row = DatabaseConnection(workspace_id=collection.workspace_id, collection=collection)
    _set_options(row, options, user=user)
    row.access = checked_access(access, workspace_id=row.workspace_id)
    row.is_enabled = is_enabled
    trial = try_connection(row)
    return _saved(row, Action.MADE), trial


def change_connection(
    *,
    connection: DatabaseConnection,
    options: DatabaseOptions | None = None,
    access: Sequence[str] | None = _UNSET,
    is_enabled: bool | None = None,
    user: Any = None,
) -> DatabaseConnection:
    """Set what is given; it is tried anew with other options. A password that is not given stays,
    unless the server or the role is another one. Raises as `connect_database`, and Forbidden."""
    turns_off = options is None and access is _UNSET and is_enabled is False
    if not turns_off and not may_change(user=user, connection=connection):
        raise Forbidden(
            gettext("The operator of the site has set this connection. Ask them to change it.")
        )
    if access is not _UNSET:
        connection.access = checked_access(access, workspace_id=connection.workspace_id)
    if is_enabled is not None:
        connection.is_enabled = is_enabled
    if options is not None:
        _set_options(connection, options, user=user)
        try_connection(connection)
    return _saved(connection, Action.CHANGED)


def remove_connection(*, connection: DatabaseConnection) -> None:
    """Forget it with its password. Queries are written and no longer run."""
    with transaction.atomic():
        _record(connection, Action.DELETED)
        connection.delete()


def try_connection(connection: DatabaseConnection) -> DatabaseTrial:
    """Connect, and look at what the role may do. A role that may write is refused, because a
    transaction that reads is a wish of ours, which only the server can enforce. One that reads more
    than it needs is warned of. Raises DatabaseUnavailable, RoleMayWrite and UnreadableSecret."""
    report = _read_role(connection)
    require_reader(connection, report)
    connection.server_version = report.server_version[:100]
    connection.tried_at = timezone.now()
    if connection.pk is not None:
        connection.save(update_fields=["server_version", "tried_at", "updated_at"])
    return DatabaseTrial(report.server_version, report.warnings)


def _read_role(connection: DatabaseConnection) -> RoleReport:
    try:
        with open_connection(connection) as opened:
            return read_role(opened)
    except psycopg.Error as error:  # such as a query that takes too long
        raise unavailable(connection, server_message(error)) from error


def encrypt_anew() -> int:
    """Encrypt all passwords by the newest of RAGSITE_CREDENTIALS_KEYS; returns how many. Raises
    UnreadableSecret, and has then changed nothing."""
    with transaction.atomic():
        rows = DatabaseConnection.objects.select_for_update().exclude(credentials=b"")
        for row in rows:
            row.credentials = encrypted_password(decrypted_password(row))
            row.save(update_fields=["credentials", "updated_at"])
        return len(rows)


def options_of(connection: DatabaseConnection) -> dict[str, Any]:
    """The options that it has, without its password."""
    names = DatabaseOptions.model_fields.keys() - {"password"}
    return {name: getattr(connection, name) for name in names}


def _set_options(row: DatabaseConnection, options: DatabaseOptions, *, user: Any) -> None:
    place = options.place
    given = options.password.get_secret_value() if options.password is not None else ""
    is_elsewhere = (row.address, row.username) != (options.address, options.username)
    if row.credentials and not given and is_elsewhere:
        # Who changes a connection need not know the password, and must not send it elsewhere.
        raise InvalidInput(
            gettext("The server or the role has changed. Enter the password again."),
            field="password",
        )
    row.by_operator = is_operator(user)
    if not row.by_operator:
        if place.socket_dir:
            raise InvalidInput(
                gettext("Only the operator of the site connects by a socket of its machine."),
                field="address",
            )
        if options.encryption == "prefer":
            raise InvalidInput(
                gettext("Databases of the public internet are reached by TLS."), field="encryption"
            )
    row.address, row.username = options.address, options.username
    row.encryption, row.seconds = options.encryption, options.seconds
    row.max_rows = options.max_rows
    row.database = options.database or place.label
    row.name = " ".join((options.name or place.database).split())[:200]
    if given:
        row.credentials = encrypted_password(given)


def _saved(row: DatabaseConnection, action: Action) -> DatabaseConnection:
    try:
        with transaction.atomic():
            row.save()
            _record(row, action)
    except IntegrityError as error:
        raise Conflict(
            gettext(
                "A connection named “{name}”, or one to this database, already exists. Change that"
                " one, or choose another name."
            ).format(name=row.name)
        ) from error
    return row


def _record(row: DatabaseConnection, action: Action, **values: Any) -> None:
    record_change(
        action=action,
        kind=Kind.DATABASE,
        workspace_id=row.workspace_id,
        object_id=row.pk,
        collection_id=row.collection_id,
        values={"is_enabled": row.is_enabled, **values},
    )
