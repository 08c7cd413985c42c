"""What every page shows of the workspace."""

from typing import Any

from django.http import HttpRequest

from accounts.choosing import may_edit, memberships_of, workspace_of
from common.errors import NotFound


def workspace(request: HttpRequest) -> dict[str, Any]:
    """`workspace` and `may_edit` of the logged-in user, and the `workspaces` to choose from."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    try:
        current = workspace_of(request)
    except NotFound:
        return {"workspace": None, "may_edit": False, "workspaces": []}
    return {
        "workspace": current,
        "may_edit": may_edit(request, current),
        "workspaces": [each.workspace for each in memberships_of(request)],
    }
