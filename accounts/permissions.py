"""What an API key may be used for."""

from collections.abc import Iterable
from typing import Any

from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.request import Request

from accounts.models import ApiKey, Scope
from common.errors import Forbidden


class ScopeMissing(Forbidden):
    """The key may do other things than this."""

    code = "insufficient_scope"

    def __init__(self, scope: str, *, has: Iterable[str]) -> None:
        super().__init__(
            f"This API key lacks the scope “{scope}”; it has: {', '.join(has)}. Make one that has"
            " it, under API keys."
        )


class KeyHasScope(BasePermission):
    """A key has the scope that the view asks for; a session or a password needs none.

    A view names it in `required_scope`, for single actions or methods in `action_scopes`. Where it
    names none, a safe method takes `read` and every other one `write`.
    """

    def has_permission(self, request: Request, view: Any) -> bool:
        if isinstance(request.auth, ApiKey):
            require_scope(request.auth, needed_scope(view, str(request.method)))
        return True


def needed_scope(view: Any, method: str) -> str:
    """The scope that a key needs for this method of the view."""
    handler = getattr(view, "action", None) or ("get" if method == "HEAD" else method.lower())
    named = getattr(view, "action_scopes", {}).get(handler) or getattr(view, "required_scope", "")
    return str(named or (Scope.READ if method in SAFE_METHODS else Scope.WRITE))


def require_scope(key: ApiKey, scope: str) -> None:
    """Raise ScopeMissing for a key without `scope`."""
    if scope not in key.scopes:
        raise ScopeMissing(scope, has=key.scopes)
