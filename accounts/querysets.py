"""The one door for reads: `visible_to(user)`."""

from typing import Any, Self, TypeVar

from django.contrib.auth.models import AnonymousUser
from django.db import models

M = TypeVar("M", bound=models.Model)


class WorkspaceOwnedQuerySet(models.QuerySet[M]):
    """Rows that belong to a workspace."""

    #: How a row names its workspace; an app's model may own through another row.
    workspace_field = "workspace"

    def visible_to(self, user: Any) -> Self:
        """Only what `user` may read: rows of the workspaces that the user is a member of.

        Being a superuser opens the admin, not other people's documents.
        """
        if user is None or isinstance(user, AnonymousUser) or not user.is_active:
            return self.none()
        return self.filter(**{f"{self.workspace_field}__memberships__user": user})
