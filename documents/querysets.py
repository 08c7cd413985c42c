"""Querysets of documents and chunks, filtered by access."""

from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import F, Q

from accounts.models import WorkspaceOwnedQuerySet
from accounts.services import principals

M = TypeVar("M", bound=models.Model)


class AccessListedQuerySet(WorkspaceOwnedQuerySet[M]):
    """Rows that belong to a workspace and may have an access list."""

    def visible_to(self, user: Any) -> Self:
        """Rows of the user's workspaces without access list, or with one that includes the user."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        return rows.filter(Q(access__isnull=True) | Q(access__overlap=principals(user)))


class ItemQuerySet(WorkspaceOwnedQuerySet[M]):
    """Items of runs, visible as their documents are."""

    def visible_to(self, user: Any) -> Self:
        """Rows of the user's workspaces except those of documents that the user may not see,
        because a file name reveals something too."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        # The run is joined, because an item without a document belongs to its collection, too.
        return rows.filter(
            Q(document__access__isnull=True) | Q(document__access__overlap=principals(user)),
            run__workspace=F("workspace"),
        )


class DocumentQuerySet(AccessListedQuerySet[M]):
    """Documents with their versions and access lists."""

    def current(self) -> Self:
        """Current versions only, without superseded ones."""
        return self.filter(is_current=True)
