"""What every API view of a workspace's things shares: its parameters and its rights."""

from functools import cached_property
from typing import Any, ClassVar

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiParameter
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView
from rest_framework.viewsets import GenericViewSet

from accounts.models import Workspace
from accounts.services import current_workspace, require_editor
from common.serializers import QuerySerializer

WORKSPACE_HEADER = OpenApiParameter(
    "X-Workspace",
    str,
    OpenApiParameter.HEADER,
    description="The same as the parameter `workspace`, which goes before it.",
)


class WorkspaceParameters(QuerySerializer):
    """The workspace that a request works in."""

    workspace = serializers.SlugField(
        required=False,
        max_length=63,
        help_text="Slug of the workspace. Default: the first that you belong to.",
    )


class WorkspaceView(APIView):
    """A view that works in one workspace, with every parameter known and checked.

    `parameters_class` describes the query string of all actions, `action_parameters` that of
    single ones (by method where the view has no actions).
    """

    parameters_class: ClassVar[type[QuerySerializer]] = WorkspaceParameters
    action_parameters: ClassVar[dict[str, type[QuerySerializer]]] = {}

    def documented_parameters(self) -> list[Any]:
        """What `common.openapi.AutoSchema` says of the query string and the headers."""
        return [self._parameters_class, WORKSPACE_HEADER]

    @property
    def _parameters_class(self) -> type[QuerySerializer]:
        action = getattr(self, "action", None) or str(self.request.method).lower()
        return self.action_parameters.get(action, self.parameters_class)

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        super().initial(request, *args, **kwargs)
        parameters = self._parameters_class.from_query(request.query_params)
        parameters.is_valid(raise_exception=True)
        self.parameters: dict[str, Any] = parameters.validated_data

    @cached_property
    def workspace(self) -> Workspace:
        """The workspace named by the request, else the user's first; raises NotFound."""
        return current_workspace(user=self.request.user, slug=self.workspace_slug)

    @property
    def workspace_slug(self) -> str:
        """The workspace that the request names, if it does."""
        return str(self.parameters.get("workspace") or self.request.headers.get("X-Workspace", ""))

    def require_editor(self, workspace: Workspace) -> None:
        """Raise Forbidden unless the user may change things in `workspace`."""
        require_editor(user=self.request.user, workspace=workspace)


class WorkspaceViewSet(WorkspaceView, GenericViewSet[Any]):
    """A viewset of things in a workspace, with the steps that its actions are made of."""

    def in_workspace(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Rows of the workspace; a thing with an id of its own is found without naming one."""
        if self.detail and not self.workspace_slug:
            return rows
        return rows.filter(workspace=self.workspace)

    def validated(self, input_class: type[serializers.Serializer[Any]], **kwargs: Any) -> Any:
        """The request's body, checked."""
        body = input_class(data=self.request.data, **kwargs)
        body.is_valid(raise_exception=True)
        return body.validated_data

    def page(self, rows: QuerySet[Any]) -> Response:
        """The page of `rows` that the request asks for."""
        page = self.paginate_queryset(rows)
        return self.get_paginated_response(self.get_serializer(page, many=True).data)

    def answer(self, row: Any, *, status: int = 200) -> Response:
        """One thing."""
        return Response(self.get_serializer(row).data, status=status)
