"""Programs that show an API key: `Authorization: Bearer rs_…`."""

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.request import Request

from accounts.attempts import fail_key
from accounts.keys import UNUSABLE, authenticate_key
from accounts.models import ApiKey, User


class KeyAuthentication(BaseAuthentication):
    """The user whose key it is; `request.auth` is the key.

    First of the authentication classes, so that its challenge answers for all of them: it names
    both ways to say who one is, and makes “nobody is logged in” a 401 rather than a 403.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        secret = bearer(request)
        if secret is None:
            return None
        key = authenticate_key(secret)
        if key is None:
            fail_key(request)
            raise AuthenticationFailed(UNUSABLE)
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        if bearer(request) is not None:
            return 'Bearer realm="ragsite", error="invalid_token"'
        return 'Basic realm="ragsite", Bearer realm="ragsite"'


def bearer(request: Any) -> str | None:
    """What stands behind `Bearer` in the request's header; None where it does not say so."""
    kind, _, token = get_authorization_header(request).partition(b" ")
    return token.strip().decode("latin-1") if kind.lower() == b"bearer" else None


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
