"""What doors call: connect, change, try, choose and remove models. Begin with `connect_model`.

The operator of the site (a superuser) connects models anywhere. An owner of a workspace may bring a
key for a public provider, where RAGSITE_WORKSPACE_MODELS allows it; such a server is reached by
checked addresses only.
"""

from collections.abc import Iterable, Mapping
from contextlib import suppress
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
from inference.model_registry import NO_CHAT, ModelRegistry, chats, embedders, rerankers
from inference.remote.probing import (
    TRIAL_SECONDS,
    EmbedderTrial,
    RerankerTrial,
    ServerFault,
    Trial,
)
from model_servers import embedding, registry
from model_servers.models import ModelConnection, WorkspaceModel
from model_servers.options import ConnectionOptions
from model_servers.servers import (
    UnreadableKey,
    build_chat,
    build_embedder,
    build_reranker,
    decrypted_key,
    server_of,
)

Purpose = ModelConnection.Purpose
AnyTrial = Trial | EmbedderTrial | RerankerTrial
_UNSET: Any = object()
#: Which answer on a site that names none.
_BUNDLED_BACKENDS = (NO_CHAT, "inference.backends.onnx_local.", "inference.backends.rerank_basic.")

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
    """The models that the environment names, as doors list them: chat models first, the default of
    each purpose before others. Bundled ones are left out."""
    found = []
    kinds: tuple[ModelRegistry[Any], ...] = (chats, embedders, rerankers)
    for models in kinds:
        for alias, entry in models.configured().items():
            is_named = models is chats or alias != "default" or models.is_set()
            if not is_named or entry["BACKEND"].startswith(_BUNDLED_BACKENDS):
                continue
            options = entry.get("OPTIONS", {})
            parts = urlsplit(options.get("base_url", ""))
            place = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
            row = {"purpose": models.kind, "name": alias, "address": place}
            row["label"] = str(Purpose(models.kind).label)
            row |= {"model": str(options.get("model", alias)), "is_default": alias == "default"}
            found.append(row)
    order = [models.kind for models in kinds]
    return sorted(found, key=lambda row: (order.index(row["purpose"]), not row["is_default"]))


def is_overruled(connection: ModelConnection) -> bool:
    """Whether it is the default of the site, and the environment names another, which wins."""
    kinds: Mapping[str, ModelRegistry[Any]] = {"chat": chats, "reranker": rerankers}
    return connection.is_default and kinds[connection.purpose].is_configured("default")


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
    is taken; for an embedder as the default what `set_default` raises."""
    row = ModelConnection(workspace=workspace)
    _set_options(row, options)
    row.workspaces = None if workspaces is None else sorted(workspaces)
    is_embedder = row.purpose == Purpose.EMBEDDER
    with transaction.atomic():
        _save(row, Action.MADE, is_default=is_default and not is_embedder)
        return set_default(connection=row) if is_default and is_embedder else row


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


def _check_purpose(row: ModelConnection, options: ConnectionOptions) -> None:
    """Raises InvalidInput for what such a server does not do, or nobody may change, and Conflict
    for another model of an embedder whose vectors are stored."""
    if row.pk is None:
        row.purpose = options.purpose
    elif row.purpose != options.purpose:
        raise InvalidInput(
            gettext("What a model is for stays. Connect it again for something else."),
            field="purpose",
        )
    if options.purpose == "chat":
        return
    kinds = ("ollama", "openai") if options.purpose == "embedder" else ("openai",)
    if options.kind not in kinds:
        raise InvalidInput(
            gettext("Servers of this kind have no embedders or rerankers that are known here."),
            field="kind",
        )
    if row.workspace_id is not None:
        raise InvalidInput(
            gettext("Embedders and rerankers serve the whole site. Its operator connects them."),
            field="purpose",
        )
    is_other = row.model != options.model.strip() or (
        options.dimensions is not None and row.dimensions not in (None, options.dimensions)
    )
    if row.pk is not None and is_other and options.purpose == "embedder":
        embedding.require_unused(row)


def _set_options(row: ModelConnection, options: ConnectionOptions) -> None:
    _check_purpose(row, options)
    given = options.key.get_secret_value() if options.key is not None else ""
    is_elsewhere = urlsplit(row.address)[:2] != urlsplit(options.address)[:2]
    is_same_model = row.model == options.model.strip()
    is_same = is_same_model and row.address == options.address
    if row.credentials and not given and is_elsewhere:
        # Who changes a connection need not know the key, and must not send it elsewhere.
        raise InvalidInput(gettext("The server has changed. Enter the key again."), field="key")
    row.kind, row.address, row.model = options.kind, options.address, options.model.strip()
    row.name = " ".join((options.name or options.model).split())
    row.input_price, row.output_price = options.input_price, options.output_price
    if options.kind == "ollama" or not is_same:
        row.context_tokens = None
    row.context_tokens = options.context_tokens or row.context_tokens
    row.dimensions = options.dimensions or (row.dimensions if is_same_model else None)
    if given:
        row.credentials = encryption.encrypt(given.encode())
    if row.workspace_id is not None and urlsplit(row.address).scheme != "https":
        raise InvalidInput(
            gettext("Models of a workspace are reached by https:// alone."), field="address"
        )
    try:
        _build(row)
    except BackendUnavailable as error:
        raise InvalidInput(
            gettext("{address} wants a key. Enter the one that its provider gave you.").format(
                address=row.address
            ),
            field="key",
        ) from error


def _build(row: ModelConnection) -> Any:
    """The model, to see whether it can be made. Raises BackendUnavailable."""
    with suppress(UnreadableKey):  # said where it is asked
        if row.purpose == Purpose.RERANKER:
            return build_reranker(row)
        if row.purpose == Purpose.EMBEDDER:
            return build_embedder(row, dimensions=row.dimensions or 1)
        return build_chat(row)
    return None


def _save(row: ModelConnection, action: Action, *, is_default: bool) -> ModelConnection:
    if row.purpose != Purpose.CHAT and row.workspaces is not None:
        raise InvalidInput(
            gettext("Embedders and rerankers are open to all workspaces."), field="workspaces"
        )
    if is_default and (row.workspace_id is not None or row.workspaces is not None):
        raise InvalidInput(
            gettext("The default of the site must be open to all workspaces."), field="workspaces"
        )
    row.is_default = is_default
    try:
        with bypass_rls(), transaction.atomic():
            if is_default:
                others = ModelConnection.objects.filter(purpose=row.purpose, is_default=True)
                others.exclude(pk=row.pk).update(is_default=False)
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
    """Make it the default of the site, or no longer; an embedder that of new collections. Raises
    InvalidInput for one that not all workspaces may use, and as `use_for_documents`."""
    if connection.purpose == Purpose.EMBEDDER:
        if not is_default:
            raise InvalidInput(
                gettext("Collections need an embedder. Make another one the default instead."),
                field="is_default",
            )
        embedding.use_for_documents(connection=connection)
        return connection
    return _save(connection, Action.CHANGED, is_default=is_default)


def remove_connection(*, connection: ModelConnection) -> None:
    """Forget it with its key. Where it was chosen the site's default answers; where it was that,
    the sources are quoted. Raises Conflict for an embedder or a reranker that collections need."""
    with bypass_rls(), transaction.atomic():
        embedding.require_unused(connection)
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
        chats = ModelConnection.objects.filter(purpose=Purpose.CHAT)
        return list(chats.filter(own | Q(workspace=None) & allowed))


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
    """The models of its server for the purpose, as that lists them. Raises ServerFault and
    UnreadableKey."""
    server = server_of(connection)
    if connection.purpose == Purpose.CHAT:
        return server.models()
    return server.models_for(connection.purpose)


def try_connection(connection: ModelConnection) -> AnyTrial:
    """Ask the model one question, have it embed two texts, or order two passages. Prompts fit into
    the context that its server reports, and an embedder has vectors of the length that it made.
    Raises ServerFault and UnreadableKey."""
    release_connection()  # the model may be slow
    server = server_of(connection)
    if connection.purpose == Purpose.RERANKER:
        reranker = build_reranker(connection, seconds=TRIAL_SECONDS)
        return server.try_reranker(reranker, connection.model)
    if connection.purpose == Purpose.EMBEDDER:
        return _try_embedder(connection)
    trial = server.try_chat(build_chat(connection, attempts=1))
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


def _try_embedder(connection: ModelConnection) -> EmbedderTrial:
    trial = server_of(connection).try_embedder(
        lambda length: build_embedder(connection, dimensions=length, is_trial=True)
    )
    if trial.dimensions == connection.dimensions:
        return trial
    if connection.dimensions is not None and connection.pk is not None:
        try:
            embedding.require_unused(connection)
        except Conflict as error:
            told = gettext(
                "“{model}” makes vectors of {new} dimensions now, those stored have {old}. Have the"
                " server run the former model, or connect this one by another name."
            ).format(model=connection, new=trial.dimensions, old=connection.dimensions)
            raise ServerFault("dimensions", told) from error
    connection.dimensions = trial.dimensions
    if connection.pk is not None:
        with bypass_rls():
            connection.save(update_fields=["dimensions", "updated_at"])
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
) -> tuple[ConnectionOptions, AnyTrial]:
    """The options of a connection whose model answered, with the context that its server reports or
    the length of its vectors, and the trial. `stored` is the connection that they change. Raises
    InvalidInput, ServerFault and UnreadableKey."""
    row = unsaved_connection(options, workspace, stored=stored)
    trial = try_connection(row)
    found = {"context_tokens": row.context_tokens, "dimensions": row.dimensions}
    return options.model_copy(update=found), trial
