"""Programs that show an API key, `Authorization: Bearer rs_…`, or a name and password."""

from typing import Any

from drf_spectacular.authentication import BasicScheme as SpectacularBasicScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.attempts import fail_key
from accounts.keys import UNUSABLE, authenticate_key
from accounts.models import ApiKey, Membership, User
from common.fence import narrow, unfenced


class KeyAuthentication(BaseAuthentication):
    """The user whose key it is; `request.auth` is the key.

    First of the authentication classes, so that its challenge answers for all of them: it names
    both ways to say who one is, and makes “nobody is logged in” a 401 rather than a 403.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        secret = bearer(request)
        if secret is None:
            return None
        with unfenced():  # by nothing but the secret
            key = authenticate_key(secret)
        if key is None:
            fail_key(request)
            raise AuthenticationFailed(UNUSABLE)
        narrow([key.workspace_id])
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        if bearer(request) is not None:
            return 'Bearer realm="ragsite", error="invalid_token"'
        return 'Basic realm="ragsite", Bearer realm="ragsite"'


def bearer(request: Any) -> str | None:
    """What stands behind `Bearer` in the request's header; None where it does not say so."""
    kind, _, token = get_authorization_header(request).partition(b" ")
    return token.strip().decode("latin-1") if kind.lower() == b"bearer" else None


class BasicAuthentication(authentication.BasicAuthentication):
    """User name and password in the `Authorization` header."""

    www_authenticate_realm = "ragsite"

    def authenticate_credentials(
        self, userid: str, password: str, request: Request | None = None
    ) -> tuple[Any, None]:
        # PostgreSQL refuses NUL in a parameter, so that the question could not even be asked.
        if "\x00" in userid or "\x00" in password:
            raise AuthenticationFailed("Invalid username/password.")
        user, _ = super().authenticate_credentials(userid, password, request)
        with unfenced():  # by nothing but the user
            narrow(Membership.objects.filter(user=user).values_list("workspace", flat=True))
        return user, None


class BasicScheme(SpectacularBasicScheme):  # type: ignore[no-untyped-call]
    """The OpenAPI name of it."""

    target_class = "accounts.authentication.BasicAuthentication"
    priority = 1


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """The OpenAPI name of it."""

    target_class = "accounts.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key, `rs_…`. It works in its own workspace, within its scopes.",
        }
