"""Which of a person's workspaces the pages show: the one chosen last, in the session."""

from collections.abc import Sequence

from django.http import HttpRequest

from accounts.models import Membership, Workspace
from accounts.services import EDITING_ROLES, current_workspace

SESSION_KEY = "workspace"


def workspace_of(request: HttpRequest) -> Workspace:
    """The workspace that a page works in; looked up once a request.

    One that the user no longer belongs to is forgotten for their first. Raises NotFound for a user
    without any.
    """
    found: Workspace | None = getattr(request, "_workspace", None)
    if found is None:
        own = {each.workspace.slug: each.workspace for each in memberships_of(request)}
        found = own.get(request.session.get(SESSION_KEY, ""))
        found = found or min(own.values(), key=lambda each: each.pk, default=None)
        found = found or current_workspace(user=request.user)
        request._workspace = found  # type: ignore[attr-defined]
    return found


def choose_workspace(request: HttpRequest, *, slug: str) -> Workspace:
    """Show this workspace from now on. Raises NotFound where the user does not belong to it."""
    chosen = current_workspace(user=request.user, slug=slug)
    request.session[SESSION_KEY] = chosen.slug
    request._workspace = chosen  # type: ignore[attr-defined]
    return chosen


def may_edit(request: HttpRequest, workspace: Workspace) -> bool:
    """`accounts.services.can_edit` of the request's user, for what a page shows."""
    return any(
        each.workspace_id == workspace.pk and each.role in EDITING_ROLES
        for each in memberships_of(request)
    )


def memberships_of(request: HttpRequest) -> Sequence[Membership]:
    """The user's memberships with their workspaces, by name: every page asks several things of
    them, and they are read once a request."""
    found: list[Membership] | None = getattr(request, "_memberships", None)
    found = getattr(request.user, "own_memberships", None) if found is None else found
    if found is None:
        own = Membership.objects.visible_to(request.user).filter(user=request.user.pk)
        found = list(own.select_related("workspace").order_by("workspace__name"))
        request._memberships = found  # type: ignore[attr-defined]
    return found
