"""What every page shows of the workspace."""

from typing import Any

from django.http import HttpRequest

from accounts.models import Workspace
from accounts.services import can_edit


def workspace(request: HttpRequest) -> dict[str, Any]:
    """`workspace` and `may_edit` of the logged-in user."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    current = Workspace.objects.visible_to(user).order_by("id").first()
    return {
        "workspace": current,
        "may_edit": current is not None and can_edit(user=user, workspace=current),
    }
