"""Connections over HTTP: made, tried, changed and removed. Begin with `ModelConnectionViewSet`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from rest_framework.decorators import action

from accounts.api import WorkspaceParameters, WorkspaceViewSet, operation
from accounts.models import Workspace
from common.errors import RagsiteError
from common.stored_messages import translated_message
from documents.services import get_collection
from inference.interfaces import InferenceError
from model_servers import embedding, services
from model_servers.api.serializers import (
    ConnectionChangeSerializer,
    ModelConnectionSerializer,
    ModelTrialSerializer,
    NewConnectionSerializer,
    ServerInput,
    ServerModelsSerializer,
    UsedSpaceSerializer,
    UseInput,
)
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions


class ModelUnavailable(RagsiteError):
    """The model server cannot be used now; the message says why."""

    code = "model_unavailable"
    status = 424


@contextmanager
def errors_of_servers() -> Iterator[None]:
    """Raise ModelUnavailable where the server does not answer as it should."""
    try:
        yield
    except InferenceError as error:
        raise ModelUnavailable(translated_message(str(error))) from error


class ModelConnectionViewSet(WorkspaceViewSet):
    """Connected models: the operator manages those of the site, owners those of their workspace."""

    tag = "models"
    nouns = ("connection to a model", "connected models")
    queryset = ModelConnection.objects.none()
    serializer_class = ModelConnectionSerializer
    required_scope = "admin"
    pagination_class = None
    action_parameters = {"list": WorkspaceParameters}
    etag_excluded_fields = frozenset({"updated_at"})

    def get_object(self) -> ModelConnection:
        self._require_any()
        return services.managed_connection(
            user=self.request.user, workspace=self.workspace, pk=self.kwargs["pk"]
        )

    def locked_rows(self) -> None:
        return None

    def _require_any(self) -> None:
        if not services.may_manage(user=self.request.user, workspace=None):
            services.require_manager(user=self.request.user, workspace=self.workspace)

    def _owner(self, name: str) -> Workspace | None:
        owner = None if name == "site" else self.workspace
        services.require_manager(user=self.request.user, workspace=owner)
        return owner

    @operation(gives=ModelConnectionSerializer, many=True)
    def list(self) -> Any:
        """List connected models.

        Those that you manage. `/models/` lists all that may be asked for.
        """
        self._require_any()
        return services.managed_connections(user=self.request.user, workspace=self.workspace)

    @operation()
    def retrieve(self, connection: ModelConnection) -> ModelConnection:
        """Read a connection to a model."""
        return connection

    @operation(takes=NewConnectionSerializer, status=201, errors=(409, 424), once=True)
    def create(
        self,
        *,
        owner: str,
        check: bool,
        workspaces: Any = None,
        is_default: bool = False,
        **values: Any,
    ) -> ModelConnection:
        """Connect a model.

        It is tried first, and not saved if it does not answer: 424.
        """
        workspace = self._owner(owner)
        options = ConnectionOptions.from_text(values)
        if check:
            with errors_of_servers():
                options, _ = services.tried_options(options, workspace)
        return services.connect_model(
            options=options, workspace=workspace, workspaces=workspaces, is_default=is_default
        )

    @operation(takes=ConnectionChangeSerializer, errors=(409, 424))
    def partial_update(
        self, connection: ModelConnection, *, is_default: bool | None = None, **values: Any
    ) -> ModelConnection:
        """Change a connection.

        A key that is not given stays, unless the server is another one.
        """
        was_default = embedding.is_default(connection)
        is_default = was_default if is_default is None else is_default
        if is_default != was_default:
            services.require_manager(user=self.request.user, workspace=None)
        if values:
            given = {"workspaces": values.pop("workspaces")} if "workspaces" in values else {}
            options = ConnectionOptions.from_text({**_options_of(connection), **values})
            connection = services.change_connection(connection=connection, options=options, **given)
        if is_default != was_default:
            with errors_of_servers():
                connection = services.set_default(connection=connection, is_default=is_default)
        return connection

    @operation(errors=(409,))
    def destroy(self, connection: ModelConnection) -> None:
        """Remove a connection.

        Its key is deleted. Without a default, answers quote the documents. An embedder or a
        reranker that collections need is not removed: 409.
        """
        services.remove_connection(connection=connection)

    @action(detail=True, methods=["post"], url_path="try", url_name="try")
    @operation(gives=ModelTrialSerializer, errors=(424,))
    def try_model(self, connection: ModelConnection) -> Any:
        """Try a connected model.

        A language model is asked one question, an embedder embeds two texts, a reranker orders two
        passages.
        """
        with errors_of_servers():
            return asdict(services.try_connection(connection))

    @action(detail=True, methods=["post"])
    @operation(takes=UseInput, gives=UsedSpaceSerializer, errors=(409, 424))
    def use(self, connection: ModelConnection, *, collections: str, collection: str = "") -> Any:
        """Use a connected embedder.

        The workers move what is there, while people search.
        """
        services.require_manager(user=self.request.user, workspace=None)
        chosen = get_collection(workspace=self.workspace, slug=collection) if collection else None
        with errors_of_servers():
            return embedding.use_for_documents(
                connection=connection,
                collection=chosen,
                everything=collections == "all",
                user=self.request.user,
            )

    @action(detail=False, methods=["post"], url_path="server-models", url_name="server-models")
    @operation(takes=ServerInput, gives=ServerModelsSerializer, errors=(424,))
    def server_models(self, *, owner: str, **values: Any) -> Any:
        """List the models of a server."""
        workspace = self._owner(owner)
        options = ConnectionOptions.from_text({**values, "model": "-"})
        with errors_of_servers():
            return {"models": services.list_models(services.unsaved_connection(options, workspace))}


def _options_of(row: ModelConnection) -> Mapping[str, Any]:
    """The options that it has, without its key."""
    named = ["purpose", "kind", "address", "model", "name", "input_price", "output_price"]
    if row.kind == ModelConnection.Kind.OLLAMA:  # others report theirs
        named.append("context_tokens")
    return {name: getattr(row, name) for name in named}
