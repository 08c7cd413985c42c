"""What doors call: connect, change, try, choose and remove models. Begin with `connect_model`.

The operator of the site (a superuser) connects models anywhere. An owner of a workspace may bring a
key for a public provider, where RAGSITE_WORKSPACE_MODELS allows it; such a server is reached by
checked addresses only.
"""

from collections.abc import Iterable
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils.translation import gettext

from accounts.audit import Action, Kind, record_change
from accounts.members import is_owner
from accounts.models import Workspace
from common import encryption
from common.errors import Conflict, Forbidden, InvalidInput, NotFound
from common.rls import bypass_rls
from common.sql import release_connection
from inference.interfaces import BackendUnavailable
from inference.model_registry import chats
from inference.remote.probing import Trial
from model_servers import registry
from model_servers.models import ModelConnection, WorkspaceModel
from model_servers.options import ConnectionOptions
from model_servers.servers import build_chat, decrypted_key, server_of

_UNSET: Any = object()

# --- rights --------------------------------------------------------------------------------------


def may_manage(*, user: Any, workspace: Workspace | None) -> bool:
    """Whether `user` may connect models for the site (`workspace` None) or for a workspace."""
    if workspace is None:
        return bool(user.is_active and user.is_superuser)
    return settings.WORKSPACE_MODELS and is_owner(user=user, workspace=workspace)


def require_manager(*, user: Any, workspace: Workspace | None) -> None:
    """Raises Forbidden."""
    if may_manage(user=user, workspace=workspace):
        return
    raise Forbidden(
        gettext("Only the operator of the site connects models. Ask them.")
        if workspace is None or not settings.WORKSPACE_MODELS
        else gettext("Only owners of “{workspace}” may do this. Ask one of them.").format(
            workspace=workspace
        )
    )


def environment_models() -> list[dict[str, Any]]:
    """The chat models that the settings name, as doors list them; the default first."""
    found = []
    for alias, entry in chats.configured().items():
        if chats.is_configured(alias):
            options = entry.get("OPTIONS", {})
            parts = urlsplit(options.get("base_url", ""))
            place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            named = {"name": alias, "model": options.get("model", alias), "address": place}
            found.append({**named, "is_default": alias == "default"})
    return sorted(found, key=lambda row: not row["is_default"])


def managed_connections(*, user: Any, workspace: Workspace) -> list[ModelConnection]:
    """The connections that `user` may change, the site's first."""
    found = Q(pk=None)
    if may_manage(user=user, workspace=None):
        found |= Q(workspace=None)
    if may_manage(user=user, workspace=workspace):
        found |= Q(workspace=workspace)
    with bypass_rls():  # the site's rows belong to no workspace
        rows = ModelConnection.objects.filter(found).select_related("workspace")
        return sorted(rows, key=lambda row: (row.workspace_id is not None, row.name.casefold()))


def managed_connection(*, user: Any, workspace: Workspace, pk: int) -> ModelConnection:
    """One of them. Raises NotFound."""
    for row in managed_connections(user=user, workspace=workspace):
        if row.pk == pk:
            return row
    raise NotFound(gettext("This connection does not exist, or you may not see it."))


# --- connections ---------------------------------------------------------------------------------


def connect_model(
    *,
    options: ConnectionOptions,
    workspace: Workspace | None = None,
    workspaces: Iterable[int] | None = None,
    is_default: bool = False,
) -> ModelConnection:
    """Keep a connection: of the site, or with `workspace` of that one alone. `workspaces` are those
    that may use one of the site, None for all. Raises InvalidInput, and Conflict for a name that
    is taken."""
    row = ModelConnection(workspace=workspace)
    _set_options(row, options)
    row.workspaces = None if workspaces is None else sorted(workspaces)
    return _save(row, Action.MADE, is_default=is_default)


def change_connection(
    *,
    connection: ModelConnection,
    options: ConnectionOptions,
    workspaces: Iterable[int] | None = _UNSET,
) -> ModelConnection:
    """Set all options; a key that is not given stays, unless the server is another one. Raises as
    `connect_model`."""
    _set_options(connection, options)
    if workspaces is not _UNSET:
        connection.workspaces = None if workspaces is None else sorted(workspaces)
    return _save(connection, Action.CHANGED, is_default=connection.is_default)


def _set_options(row: ModelConnection, options: ConnectionOptions) -> None:
    given = options.key.get_secret_value() if options.key is not None else ""
    is_elsewhere = urlsplit(row.address)[:2] != urlsplit(options.address)[:2]
    is_same = (row.address, row.model) == (options.address, options.model.strip())
    if row.credentials and not given and is_elsewhere:
        # Who changes a connection need not know the key, and must not send it elsewhere.
        raise InvalidInput(gettext("The server has changed. Enter the key again."), field="key")
    row.kind, row.address, row.model = options.kind, options.address, options.model.strip()
    row.name = " ".join((options.name or options.model).split())
    row.input_price, row.output_price = options.input_price, options.output_price
    if options.kind == "ollama" or not is_same:
        row.context_tokens = None
    row.context_tokens = options.context_tokens or row.context_tokens
    if given:
        row.credentials = encryption.encrypt(given.encode())
    if row.workspace_id is not None and urlsplit(row.address).scheme != "https":
        raise InvalidInput(
            gettext("Models of a workspace are reached by https:// alone."), field="address"
        )
    try:
        build_chat(row)
    except BackendUnavailable as error:
        raise InvalidInput(
            gettext("{address} wants a key. Enter the one that its provider gave you.").format(
                address=row.address
            ),
            field="key",
        ) from error


def _save(row: ModelConnection, action: Action, *, is_default: bool) -> ModelConnection:
    if is_default and (row.workspace_id is not None or row.workspaces is not None):
        raise InvalidInput(
            gettext("The default of the site must be open to all workspaces."), field="workspaces"
        )
    row.is_default = is_default
    try:
        with bypass_rls(), transaction.atomic():
            if is_default:
                others = ModelConnection.objects.filter(is_default=True).exclude(pk=row.pk)
                others.update(is_default=False)
            row.save()
            _record(row, action)
    except IntegrityError as error:
        raise Conflict(
            gettext("A model named “{name}” is connected already. Choose another name.").format(
                name=row.name
            )
        ) from error
    transaction.on_commit(registry.forget)
    return row


def _record(row: ModelConnection, action: Action, **values: Any) -> None:
    record_change(
        action=action,
        kind=Kind.MODEL,
        workspace_id=row.workspace_id,
        object_id=row.pk,
        values={"is_default": row.is_default, **values},
    )


def set_default(*, connection: ModelConnection, is_default: bool = True) -> ModelConnection:
    """Make it the default of the site, or no longer. Raises InvalidInput for one that not all
    workspaces may use."""
    return _save(connection, Action.CHANGED, is_default=is_default)


def remove_connection(*, connection: ModelConnection) -> None:
    """Forget it with its key. Where it was chosen the site's default answers; where it was that,
    the sources are quoted."""
    with bypass_rls(), transaction.atomic():
        _record(connection, Action.DELETED)
        connection.delete()
    transaction.on_commit(registry.forget)


def encrypt_anew() -> int:
    """Encrypt all keys by the newest of RAGSITE_CREDENTIALS_KEYS; returns how many. Raises
    UnreadableKey, and has then changed nothing."""
    with bypass_rls(), transaction.atomic():
        rows = ModelConnection.objects.select_for_update().exclude(credentials=b"")
        for row in rows:
            row.credentials = encryption.encrypt(decrypted_key(row).encode())
            row.save(update_fields=["credentials", "updated_at"])
        return len(rows)


# --- workspaces ----------------------------------------------------------------------------------


def usable_connections(workspace: Workspace) -> list[ModelConnection]:
    """The connections that may answer in the workspace, by name."""
    own = Q(workspace=workspace)
    allowed = Q(workspaces=None) | Q(workspaces__contains=[workspace.pk])
    with bypass_rls():  # the site's rows belong to no workspace
        return list(ModelConnection.objects.filter(own | Q(workspace=None) & allowed))


def chosen_connection(workspace: Workspace) -> ModelConnection | None:
    """What the workspace has chosen, if it has."""
    with bypass_rls():
        row = WorkspaceModel.objects.filter(workspace=workspace).select_related("connection")
        found = row.first()
    return found.connection if found else None


def choose_model(*, workspace: Workspace, connection: ModelConnection | None) -> None:
    """Have a model answer in the workspace; None: the site's default. Raises InvalidInput for one
    that it may not use."""
    if connection is not None and connection not in usable_connections(workspace):
        raise InvalidInput(
            gettext("“{model}” may not be used in “{workspace}”.").format(
                model=connection, workspace=workspace
            ),
            field="connection",
        )
    with bypass_rls(), transaction.atomic():
        if connection is None:
            WorkspaceModel.objects.filter(workspace=workspace).delete()
        else:
            WorkspaceModel.objects.update_or_create(
                workspace=workspace, defaults={"connection": connection}
            )
        record_change(
            action=Action.CHANGED,
            kind=Kind.MODEL,
            workspace_id=workspace.pk,
            object_id=connection.pk if connection else None,
        )
    transaction.on_commit(registry.forget)


# --- trying --------------------------------------------------------------------------------------


def unsaved_connection(
    options: ConnectionOptions,
    workspace: Workspace | None = None,
    *,
    stored: ModelConnection | None = None,
) -> ModelConnection:
    """A connection to be tried before it is kept, with the key of the `stored` one where none is
    given. Raises InvalidInput."""
    row = ModelConnection(workspace=workspace)
    if stored is not None:
        row.credentials, row.address = stored.credentials, stored.address
    _set_options(row, options)
    return row


def list_models(connection: ModelConnection) -> list[str]:
    """The models of its server, as that lists them. Raises ServerFault and UnreadableKey."""
    return server_of(connection).models()


def try_connection(connection: ModelConnection) -> Trial:
    """Ask the model one question. Prompts fit into the context that its server reports. Raises
    ServerFault and UnreadableKey."""
    release_connection()  # the model may be slow
    trial = server_of(connection).try_chat(build_chat(connection, attempts=1))
    if connection.kind != ModelConnection.Kind.OLLAMA and trial.context_tokens not in (
        None,
        connection.context_tokens,
    ):
        connection.context_tokens = trial.context_tokens
        if connection.pk is not None:
            with bypass_rls():
                connection.save(update_fields=["context_tokens", "updated_at"])
            transaction.on_commit(registry.forget)
    return trial


def with_reported_context(options: ConnectionOptions) -> ConnectionOptions:
    """The options with the context of the model, where a server reports one. Ollama takes ours."""
    if options.kind == "ollama":
        return options
    context = server_of(unsaved_connection(options)).context_tokens(options.model)
    return options.model_copy(update={"context_tokens": context})


def tried_options(
    options: ConnectionOptions,
    workspace: Workspace | None = None,
    *,
    stored: ModelConnection | None = None,
) -> tuple[ConnectionOptions, Trial]:
    """The options of a connection whose model answered, with the context that its server reports,
    and the trial. `stored` is the connection that they change. Raises InvalidInput, ServerFault and
    UnreadableKey."""
    row = unsaved_connection(options, workspace, stored=stored)
    trial = try_connection(row)
    return options.model_copy(update={"context_tokens": row.context_tokens}), trial
