"""Chainable reads of conversations, pipelines and traces."""

from typing import Any, Self, TypeVar

from django.db import models

from accounts.querysets import WorkspaceOwnedQuerySet

M = TypeVar("M", bound=models.Model)


class OwnQuerySet(WorkspaceOwnedQuerySet[M]):
    """What belongs to one user alone: nobody else in the workspace reads it."""

    #: How a row names its user; one may own through another row.
    user_field = "user"

    def visible_to(self, user: Any) -> Self:
        """The user's own rows in workspaces that the user is still a member of."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(**{self.user_field: user})


class MessageQuerySet(OwnQuerySet[M]):
    """Messages are their conversation's user's."""

    user_field = "conversation__user"


class SpanQuerySet(OwnQuerySet[M]):
    """Spans are their trace's user's."""

    user_field = "trace__user"
