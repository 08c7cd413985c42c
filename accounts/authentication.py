"""Authentication of API requests (API key or HTTP Basic), scopes of keys, and request quotas."""

from typing import Any

from django.conf import settings
from django.utils.translation import gettext, ngettext
from drf_spectacular.authentication import BasicScheme as SpectacularBasicScheme
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from rest_framework import authentication
from rest_framework.authentication import BaseAuthentication, get_authorization_header
from rest_framework.exceptions import AuthenticationFailed
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from accounts.api_keys import INVALID_KEY, KeyLimited, ScopeMissing, authenticate_key
from accounts.credentials import SignInMethod
from accounts.models import ApiKey, Membership, Scope, User
from accounts.rate_limits import Quota, TooManyRequests, consume, parse_rate, record_failed_key
from accounts.services import shard_to_work_on
from accounts.sign_in import (
    SignInRefused,
    asks_second_factor,
    check_password_allowed,
    record_refusal,
)
from common.rls import bypass_rls, restrict_workspaces
from common.shards import choose_shard


class KeyAuthentication(BaseAuthentication):
    """Authenticates by API key; `request.auth` is the key.

    First of the authentication classes, so that its challenge is used for all: it names both
    schemes and makes a missing login a 401 rather than a 403.
    """

    def authenticate(self, request: Request) -> tuple[User, ApiKey] | None:
        secret = self.secret(request)
        if secret is None:
            return None
        with bypass_rls():  # by nothing but the secret
            key = authenticate_key(secret)
        if key is None:
            record_failed_key(request)
            raise AuthenticationFailed(INVALID_KEY)
        restrict_workspaces([key.workspace_id], collections=key.collections)
        if settings.DATABASE_SHARDS:
            choose_shard(shard_to_work_on(key.workspace, method=request.method))
        return key.user, key

    def authenticate_header(self, request: Request) -> str:
        if self.secret(request) is not None:
            return 'Bearer realm="ragsite", error="invalid_token"'
        return 'Basic realm="ragsite", Bearer realm="ragsite"'

    @staticmethod
    def secret(request: Request) -> str | None:
        """The API key that the request sends, or None."""
        return bearer(request)


class HeaderKeyAuthentication(KeyAuthentication):
    """Takes the key from the header `x-api-key`, as Anthropic's clients send it."""

    @staticmethod
    def secret(request: Request) -> str | None:
        return request.headers.get("x-api-key") or None


def bearer(request: Any) -> str | None:
    """The token behind `Bearer` in the Authorization header, or None."""
    kind, _, token = get_authorization_header(request).partition(b" ")
    return token.strip().decode("latin-1") if kind.lower() == b"bearer" else None


class BasicAuthentication(authentication.BasicAuthentication):
    """Authenticates by user name and password (HTTP Basic)."""

    www_authenticate_realm = "ragsite"

    def authenticate_credentials(
        self, userid: str, password: str, request: Request | None = None
    ) -> tuple[Any, None]:
        # PostgreSQL refuses NUL in a parameter, so that the question could not even be asked.
        if "\x00" in userid or "\x00" in password:
            raise AuthenticationFailed("Invalid username/password.")
        user, _ = super().authenticate_credentials(userid, password, request)
        try:
            check_password_allowed(user)
        except SignInRefused as error:
            record_refusal(reason=error.reason, method=SignInMethod.PASSWORD, user=user)
            raise AuthenticationFailed(str(error)) from error
        if asks_second_factor(user):
            raise AuthenticationFailed(
                "A password alone does not open this account: it has a second factor, or must have"
                " one. Use an API key."
            )
        with bypass_rls():  # by nothing but the user
            restrict_workspaces(
                Membership.objects.filter(user=user).values_list("workspace", flat=True)
            )
        return user, None


class BasicScheme(SpectacularBasicScheme):  # type: ignore[no-untyped-call]
    """OpenAPI security scheme of HTTP Basic."""

    target_class = "accounts.authentication.BasicAuthentication"
    priority = 1


class KeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """OpenAPI security scheme of API keys."""

    target_class = "accounts.authentication.KeyAuthentication"
    name = "apiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "http",
            "scheme": "bearer",
            "description": "An API key, `rs_…`. It works in its own workspace, within its scopes.",
        }


class HeaderKeyScheme(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    """OpenAPI security scheme of API keys in a header of their own."""

    target_class = "accounts.authentication.HeaderKeyAuthentication"
    name = "xApiKey"

    def get_security_definition(self, auto_schema: Any) -> dict[str, Any]:
        return {
            "type": "apiKey",
            "in": "header",
            "name": "x-api-key",
            "description": "An API key, as Anthropic's clients send it.",
        }


class KeyHasScope(BasePermission):
    """Checks the scope of an API key; a session or a password needs none.

    A view names it in `required_scope`, for single actions or methods in `action_scopes`. Without
    either, safe methods need `read` and all others `write`. A key that is limited to collections
    opens only what says `for_limited_keys`: of that the database shows those collections alone.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.auth, ApiKey):
            require_scope(request.auth, required_scope(view, str(request.method)))
            if request.auth.collections and not _serves_limited_keys(view, str(request.method)):
                raise KeyLimited
        return True


def required_scope(view: Any, method: str) -> str:
    """The scope that a key needs for this method of the view."""
    handler = handler_name(view, method)
    named = getattr(view, "action_scopes", {}).get(handler) or getattr(view, "required_scope", "")
    return str(named or (Scope.READ if method in SAFE_METHODS else Scope.WRITE))


def _serves_limited_keys(view: Any, method: str) -> bool:
    served = getattr(view, "for_limited_keys", False)
    return served if isinstance(served, bool) else handler_name(view, method) in served


def handler_name(view: Any, method: str) -> str:
    """The action of a viewset, or the method in small letters; that of HEAD is `get`."""
    return getattr(view, "action", None) or ("get" if method == "HEAD" else method.lower())


def require_scope(key: ApiKey, scope: str) -> None:
    """Raise ScopeMissing for a key without `scope`."""
    if scope not in key.scopes:
        raise ScopeMissing(scope, has=key.scopes)


REQUESTS_QUOTA, MODELS_QUOTA = "requests", "models"


class RateThrottle(BaseThrottle):
    """Counts each request once; `asks_model` of the view selects the quota."""

    def allow_request(self, request: Request, view: Any) -> bool:
        """Count the request. Raises TooManyRequests. Anonymous requests are not counted: they need
        a login.
        """
        if request.user is None or not request.user.is_authenticated:
            return True
        name = MODELS_QUOTA if getattr(view, "asks_model", False) else REQUESTS_QUOTA
        rate = parse_rate(settings.API_MODEL_RATE if name == MODELS_QUOTA else settings.API_RATE)
        is_key = isinstance(request.auth, ApiKey)
        caller = f"key:{request.auth.pk}" if is_key else f"user:{request.user.pk}"
        quota = consume(caller=caller, name=name, rate=rate)
        if quota is not None:
            view.quota_headers = rate_limit_headers(name, quota)
            if not quota.passes:
                wait = max(1, quota.wait)
                message = (
                    gettext("Requests to models: the limit of {rate} is reached.")
                    if name == MODELS_QUOTA
                    else gettext("The limit of {rate} is reached.")
                )
                again = ngettext(
                    "Try again in {number} second.", "Try again in {number} seconds.", wait
                )
                raise TooManyRequests(
                    f"{message.format(rate=quota.rate)} {again.format(number=wait)}",
                    retry_after=wait,
                )
        return True


def rate_limit_headers(name: str, quota: Quota) -> dict[str, str]:
    """Quota headers of draft-ietf-httpapi-ratelimit-headers, in seconds from now."""
    return {
        "RateLimit-Policy": f'"{name}";q={quota.rate.limit};w={quota.rate.seconds}',
        "RateLimit": f'"{name}";r={quota.remaining};t={quota.reset}',
    }
