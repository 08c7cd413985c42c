"""Which of a person's workspaces the pages show: the one chosen last, in the session."""

from django.http import HttpRequest

from accounts.models import Workspace
from accounts.services import current_workspace

SESSION_KEY = "workspace"


def workspace_of(request: HttpRequest) -> Workspace:
    """The workspace that a page works in; looked up once a request.

    One that the user no longer belongs to is forgotten for their first. Raises NotFound for a user
    without any.
    """
    found: Workspace | None = getattr(request, "_workspace", None)
    if found is None:
        found = _chosen(request) or current_workspace(user=request.user)
        request._workspace = found  # type: ignore[attr-defined]
    return found


def choose_workspace(request: HttpRequest, *, slug: str) -> Workspace:
    """Show this workspace from now on. Raises NotFound where the user does not belong to it."""
    chosen = current_workspace(user=request.user, slug=slug)
    request.session[SESSION_KEY] = chosen.slug
    request._workspace = chosen  # type: ignore[attr-defined]
    return chosen


def _chosen(request: HttpRequest) -> Workspace | None:
    slug = request.session.get(SESSION_KEY)
    return Workspace.objects.visible_to(request.user).filter(slug=slug).first() if slug else None
