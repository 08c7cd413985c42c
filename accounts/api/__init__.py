"""API of accounts, and the base of all views of the API: `accounts.api.base`."""

from accounts.api.base import (
    ListParameters,
    ResourceViewSet,
    WorkspaceParameters,
    WorkspaceView,
    WorkspaceViewSet,
    operation,
)

__all__ = [
    "ListParameters",
    "ResourceViewSet",
    "WorkspaceParameters",
    "WorkspaceView",
    "WorkspaceViewSet",
    "operation",
]
