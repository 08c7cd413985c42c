"""Connections over HTTP: made, tried, changed and removed. Begin with `ModelConnectionViewSet`."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api import WorkspaceParameters, WorkspaceViewSet
from accounts.models import Workspace
from common.api import ErrorSerializer
from common.errors import RagsiteError
from common.openapi import load_examples
from common.stored_messages import translated_message
from inference.interfaces import InferenceError
from model_servers import services
from model_servers.api.serializers import (
    ConnectionChangeSerializer,
    ModelConnectionSerializer,
    ModelTrialSerializer,
    NewConnectionSerializer,
    ServerInput,
    ServerModelsSerializer,
)
from model_servers.models import ModelConnection
from model_servers.options import ConnectionOptions

examples = load_examples("model_servers.api")


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


@extend_schema(tags=["models"])
class ModelConnectionViewSet(WorkspaceViewSet):
    """Connected models: the operator manages those of the site, owners those of their workspace."""

    queryset = ModelConnection.objects.none()
    serializer_class = ModelConnectionSerializer
    lookup_value_converter = "int"
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

    def _owner(self, values: dict[str, Any]) -> Workspace | None:
        owner = None if values.pop("owner") == "site" else self.workspace
        services.require_manager(user=self.request.user, workspace=owner)
        return owner

    @extend_schema(
        summary="List connected models",
        description="Those that you manage. `/models/` lists all that may be asked for.",
    )
    def list(self, *args: Any, **kwargs: Any) -> Response:
        self._require_any()
        rows = services.managed_connections(user=self.request.user, workspace=self.workspace)
        return Response(self.get_serializer(rows, many=True).data)

    @extend_schema(summary="Read a connection to a model")
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())

    # Not `idempotent`: a stored request would keep the key.
    @extend_schema(
        summary="Connect a model",
        description="It is asked one question first, and not saved if it does not answer: 424.",
        request=NewConnectionSerializer,
        responses={
            201: ModelConnectionSerializer,
            409: ErrorSerializer,
            424: ErrorSerializer,
        },
        examples=[examples.NEW_CONNECTION],
    )
    def create(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(NewConnectionSerializer)
        owner = self._owner(values)
        workspaces, is_default = values.pop("workspaces", None), values.pop("is_default", False)
        is_checked = values.pop("check")
        options = ConnectionOptions.from_text(values)
        if is_checked:
            with errors_of_servers():
                services.try_connection(services.unsaved_connection(options, owner))
        row = services.connect_model(
            options=options, workspace=owner, workspaces=workspaces, is_default=is_default
        )
        answer = self.answer(row, status=201)
        answer.headers["Location"] = answer.data["url"]
        return answer

    @extend_schema(
        summary="Change a connection",
        description="A key that is not given stays, unless the server is another one.",
        request=ConnectionChangeSerializer,
        responses={200: ModelConnectionSerializer, 409: ErrorSerializer},
        examples=[examples.ANOTHER_KEY],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        row = self.get_object()
        values = self.validated(ConnectionChangeSerializer, partial=True)
        given: dict[str, Any] = {}
        if "workspaces" in values:
            given["workspaces"] = values.pop("workspaces")
        is_default = values.pop("is_default", row.is_default)
        if is_default != row.is_default:
            services.require_manager(user=self.request.user, workspace=None)
        if values or given:
            options = ConnectionOptions.from_text({**_options_of(row), **values})
            row = services.change_connection(connection=row, options=options, **given)
        if is_default != row.is_default:
            row = services.set_default(connection=row, is_default=is_default)
        return self.answer(row)

    @extend_schema(
        summary="Remove a connection",
        description="Its key is deleted. Without a default, answers quote the documents.",
    )
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        services.remove_connection(connection=self.get_object())
        return Response(status=204)

    @extend_schema(
        summary="Ask a connected model one question",
        request=None,
        responses={200: ModelTrialSerializer, 424: ErrorSerializer},
    )
    @action(detail=True, methods=["post"], url_path="try", url_name="try")
    def try_model(self, *args: Any, **kwargs: Any) -> Response:
        with errors_of_servers():
            trial = services.try_connection(self.get_object())
        return Response(ModelTrialSerializer(trial).data)

    @extend_schema(
        summary="List the models of a server",
        request=ServerInput,
        responses={200: ServerModelsSerializer, 424: ErrorSerializer},
        examples=[examples.SERVER],
    )
    @action(detail=False, methods=["post"], url_path="server-models", url_name="server-models")
    def server_models(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(ServerInput)
        owner = self._owner(values)
        options = ConnectionOptions.from_text({**values, "model": "-"})
        with errors_of_servers():
            names = services.list_models(services.unsaved_connection(options, owner))
        return Response(ServerModelsSerializer({"models": names}).data)


def _options_of(row: ModelConnection) -> Mapping[str, Any]:
    """The options that it has, without its key."""
    named = ("kind", "address", "model", "name", "context_tokens")
    return {name: getattr(row, name) for name in named}
