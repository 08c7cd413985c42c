"""API keys: listed, made, revoked."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.decorators import action
from rest_framework.response import Response

from accounts.api.base import WorkspaceViewSet
from accounts.api.serializers import KeyFilter, KeySerializer, NewKeyInput, SecretSerializer
from accounts.keys import create_key, revoke_key
from accounts.models import ApiKey, Scope
from common.api import ErrorSerializer

NEW_KEY = OpenApiExample(
    "A key for a program that searches",
    value={
        "name": "nightly report",
        "scopes": ["read", "chat"],
        "expires_at": "2027-01-01T00:00:00Z",
    },
    request_only=True,
)


@extend_schema(tags=["keys"])
class ApiKeyViewSet(WorkspaceViewSet):
    """The user's own keys; an owner sees those of all members."""

    serializer_class = KeySerializer
    lookup_value_converter = "int"
    required_scope = Scope.ADMIN
    action_parameters = {"list": KeyFilter}

    def get_queryset(self) -> QuerySet[ApiKey]:
        rows = ApiKey.objects.visible_to(self.request.user).select_related("user", "workspace")
        return self.in_workspace(rows)

    @extend_schema(summary="List API keys, newest first")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        return self.page(self.get_queryset())

    # Not `once`: a kept answer would keep the secret.
    @extend_schema(
        summary="Make an API key",
        description="It has the rights that you have, within its scopes. A key that makes another"
        " gives it no more than it has itself.",
        request=NewKeyInput,
        responses={201: SecretSerializer, 409: ErrorSerializer},
        examples=[NEW_KEY],
    )
    def create(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(NewKeyInput)
        key, secret = create_key(
            user=self.request.user, workspace=self.workspace, maker=self.key, **values
        )
        shown = KeySerializer(key, context=self.get_serializer_context()).data
        return Response(
            {**shown, "secret": secret}, status=201, headers={"Cache-Control": "no-store"}
        )

    @extend_schema(summary="Read an API key, without its secret")
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())

    @extend_schema(
        summary="Revoke an API key",
        description="It opens nothing from then on. A key that is revoked is answered the same.",
        request=None,
    )
    @action(detail=True, methods=["post"])
    def revoke(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(revoke_key(key=self.get_object()))
