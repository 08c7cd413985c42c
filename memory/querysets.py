"""Chainable reads of memories."""

from datetime import datetime
from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import F, Q

from accounts.querysets import WorkspaceOwnedQuerySet
from memory.scopes import UserScope, account_id

M = TypeVar("M", bound=models.Model)

#: Values of a key as they came after each other: of two of one moment the one that ended then was
#: first.
LATEST_FIRST = (F("valid_from").desc(), F("valid_to").desc(nulls_first=True), F("pk").desc())


class RememberedQuerySet(WorkspaceOwnedQuerySet[M]):
    """Rows of one user of a workspace."""

    def of(self, scope: UserScope | None) -> Self:
        """What this user is remembered by; of nobody nothing."""
        if scope is None:
            return self.none()
        return self.filter(workspace_id=scope.workspace_id, user_id=scope.user_id)

    def visible_to(self, user: Any) -> Self:
        """An account's own: members of a workspace share documents, and never memories."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(user_id=account_id(user))

    def unembedded(self) -> Self:
        """Those that are found by their words only."""
        return self.filter(embedding__isnull=True)


class FactQuerySet(RememberedQuerySet[M]):
    """Facts with their history."""

    def current(self) -> Self:
        """What is held true now."""
        return self.filter(valid_to=None)

    def latest_first(self) -> Self:
        """The last value of a key before those that it took the place of."""
        return self.order_by(*LATEST_FIRST)

    def one_a_key(self) -> Self:
        """The last value of each key, by key."""
        return self.order_by("key", *LATEST_FIRST).distinct("key")

    def as_of(self, moment: datetime) -> Self:
        """What was held true then."""
        return self.filter(Q(valid_to=None) | Q(valid_to__gt=moment), valid_from__lte=moment)
