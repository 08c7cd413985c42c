"""What every API view of a user's memory shares: whose it is, and that nobody keeps a copy."""

from functools import cached_property
from typing import Any, ClassVar

from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from memory.api.inputs import MemoryParameters
from memory.api.pagination import MemoryPagination
from memory.scopes import UserScope, scope_of

Serializer = type[serializers.BaseSerializer[Any]]


class MemoryView(WorkspaceView):
    """A view that works on the memory of one user."""

    parameters_class = MemoryParameters
    required_scope = "memory"
    pagination_class: ClassVar[type[MemoryPagination] | None] = None

    @cached_property
    def scope(self) -> UserScope | None:
        """Whose memory; None for nobody's. Raises Forbidden, and InvalidInput."""
        return scope_of(
            user=self.request.user,
            workspace=self.workspace,
            user_id=self.parameters.get("user_id"),
        )

    @property
    def user_id(self) -> str | None:
        """Under which the memory is kept."""
        return self.scope.user_id if self.scope else None

    def body(self, input_class: type[serializers.Serializer[Any]]) -> dict[str, Any]:
        """The request's body, checked."""
        body = input_class(data=self.request.data)
        body.is_valid(raise_exception=True)
        values: dict[str, Any] = body.validated_data
        return values

    def answer(self, serializer: Serializer, *, status: int = 200, **values: Any) -> Response:
        """`values`, and whose they are."""
        return Response(serializer({"user_id": self.user_id, **values}).data, status=status)

    def page(self, rows: QuerySet[Any], serializer: Serializer) -> Response:
        """The page of `rows` that the request asks for."""
        assert self.pagination_class is not None
        paginator = self.pagination_class()
        page = paginator.paginate_queryset(rows, self.request, view=self)
        shown = paginator.get_paginated_response(serializer(page, many=True).data)
        return Response({"user_id": self.user_id, **shown.data})

    def finalize_response(self, request: Request, response: Any, *args: Any, **kwargs: Any) -> Any:
        answer = super().finalize_response(request, response, *args, **kwargs)
        answer.headers["Cache-Control"] = "no-store"
        return answer
