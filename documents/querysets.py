"""Chainable reads of documents and chunks."""

from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Q

from accounts.querysets import WorkspaceOwnedQuerySet
from accounts.services import principals

M = TypeVar("M", bound=models.Model)


class AccessListedQuerySet(WorkspaceOwnedQuerySet[M]):
    """Rows that may carry an access list besides their workspace."""

    def visible_to(self, user: Any) -> Self:
        """Rows of the user's workspaces whose access list, where there is one, names the user."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        return rows.filter(Q(access__isnull=True) | Q(access__overlap=principals(user)))


class ItemQuerySet(WorkspaceOwnedQuerySet[M]):
    """Files of runs."""

    def visible_to(self, user: Any) -> Self:
        """Rows of the user's workspaces, but those of documents that the user may not see: a file's
        name tells something as well."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        return rows.filter(
            Q(document__access__isnull=True) | Q(document__access__overlap=principals(user))
        )


class DocumentQuerySet(AccessListedQuerySet[M]):
    """Documents."""

    def current(self) -> Self:
        """Without superseded versions."""
        return self.filter(is_current=True)
