"""Base classes of the API views of all apps, and the API of the keys."""

from accounts.api.base import (
    WORKSPACE_HEADER,
    ListParameters,
    WorkspaceParameters,
    WorkspaceView,
    WorkspaceViewSet,
    idempotent,
)

__all__ = [
    "WORKSPACE_HEADER",
    "ListParameters",
    "WorkspaceParameters",
    "WorkspaceView",
    "WorkspaceViewSet",
    "idempotent",
]
