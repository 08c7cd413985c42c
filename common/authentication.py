"""Who is asking: HTTP Basic for programs; Django REST framework's own sessions for the browser."""

from typing import Any

from drf_spectacular.authentication import BasicScheme as SpectacularBasicScheme
from rest_framework import authentication, exceptions
from rest_framework.request import Request


class BasicAuthentication(authentication.BasicAuthentication):
    """User name and password in the `Authorization` header."""

    www_authenticate_realm = "ragsite"

    def authenticate_credentials(
        self, userid: str, password: str, request: Request | None = None
    ) -> tuple[Any, None]:
        # PostgreSQL refuses NUL in a parameter, so that the question could not even be asked.
        if "\x00" in userid or "\x00" in password:
            raise exceptions.AuthenticationFailed("Invalid username/password.")
        return super().authenticate_credentials(userid, password, request)


class BasicScheme(SpectacularBasicScheme):  # type: ignore[no-untyped-call]
    """The OpenAPI name of it."""

    target_class = "common.authentication.BasicAuthentication"
    priority = 1
