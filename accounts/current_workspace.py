"""The workspace that the pages work in: the one last chosen, kept in the session."""

from collections.abc import Sequence
from typing import Any

from django.http import HttpRequest

from accounts.models import Membership, Workspace
from accounts.services import EDITING_ROLES, current_workspace
from common.errors import NotFound

SESSION_KEY = "workspace"


def request_workspace(request: HttpRequest) -> Workspace:
    """The workspace that a page works in; looked up once a request.

    If the user no longer belongs to the chosen one, it is the user's first. Raises NotFound for a
    user without any.
    """
    found: Workspace | None = getattr(request, "_workspace", None)
    if found is None:
        own = {each.workspace.slug: each.workspace for each in request_memberships(request)}
        found = own.get(request.session.get(SESSION_KEY, ""))
        found = found or min(own.values(), key=lambda each: each.pk, default=None)
        found = found or current_workspace(user=request.user)
        request._workspace = found  # type: ignore[attr-defined]
    return found


def select_workspace(request: HttpRequest, *, slug: str) -> Workspace:
    """Store the choice in the session. Raises NotFound where the user is no member."""
    chosen = current_workspace(user=request.user, slug=slug)
    request.session[SESSION_KEY] = chosen.slug
    request._workspace = chosen  # type: ignore[attr-defined]
    return chosen


def may_edit(request: HttpRequest, workspace: Workspace) -> bool:
    """`accounts.services.can_edit` of the request's user, without a query."""
    return any(
        each.workspace_id == workspace.pk and each.role in EDITING_ROLES
        for each in request_memberships(request)
    )


def request_memberships(request: HttpRequest) -> Sequence[Membership]:
    """The user's memberships with their workspaces, by name; read once a request."""
    found: list[Membership] | None = getattr(request, "_memberships", None)
    found = getattr(request.user, "own_memberships", None) if found is None else found
    if found is None:
        own = Membership.objects.visible_to(request.user).filter(user=request.user.pk)
        found = list(own.select_related("workspace").order_by("workspace__name"))
        request._memberships = found  # type: ignore[attr-defined]
    return found


def workspace(request: HttpRequest) -> dict[str, Any]:
    """`workspace` and `may_edit` of the logged-in user, and `workspaces` to choose from."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    try:
        current = request_workspace(request)
    except NotFound:
        return {"workspace": None, "may_edit": False, "workspaces": []}
    return {
        "workspace": current,
        "may_edit": may_edit(request, current),
        "workspaces": [each.workspace for each in request_memberships(request)],
    }
