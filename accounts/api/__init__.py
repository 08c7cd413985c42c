"""What API views of all apps are made of, and the API of the keys."""

from accounts.api.base import (
    WORKSPACE_HEADER,
    WorkspaceParameters,
    WorkspaceView,
    WorkspaceViewSet,
    once,
)

__all__ = [
    "WORKSPACE_HEADER",
    "WorkspaceParameters",
    "WorkspaceView",
    "WorkspaceViewSet",
    "once",
]
