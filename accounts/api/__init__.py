"""API of accounts, and the base of all views of the API: `accounts.api.base`."""

from accounts.api.base import (
    ListParameters,
    ResourceViewSet,
    WorkspaceParameters,
    WorkspaceView,
    WorkspaceViewSet,
    operation,
)
from accounts.api.etags import READ_METHODS, etag
from accounts.api.idempotent import idempotent

__all__ = [
    "READ_METHODS",
    "ListParameters",
    "ResourceViewSet",
    "WorkspaceParameters",
    "WorkspaceView",
    "WorkspaceViewSet",
    "etag",
    "idempotent",
    "operation",
]
