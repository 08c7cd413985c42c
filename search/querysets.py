"""Chainable reads of the search log and of judgements."""

from typing import Any, Self, TypeVar

from django.db import models
from django.db.models import Q

from accounts.querysets import WorkspaceOwnedQuerySet
from accounts.services import principals

M = TypeVar("M", bound=models.Model)


class SearchLogQuerySet(WorkspaceOwnedQuerySet[M]):
    """What was asked."""

    def visible_to(self, user: Any) -> Self:
        """The user's own questions: what others ask is not for every member to read."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(user=user)

    def found_nothing(self) -> Self:
        """Questions without any hit."""
        return self.filter(total=0)


class JudgementQuerySet(WorkspaceOwnedQuerySet[M]):
    """What people think of hits."""

    def visible_to(self, user: Any) -> Self:
        """Judgements in the user's workspaces, of documents that the user may read."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        return rows.filter(
            Q(document__access__isnull=True) | Q(document__access__overlap=principals(user))
        )

    def golden(self) -> Self:
        """Judgements of questions that a document is known to answer, of current documents.

        A question with bad hits only says what is wrong, not what would be right: no measure can
        use it.
        """
        answered = self.filter(grade__gt=0, document__is_current=True)
        return self.filter(
            document__is_current=True, question_sha256__in=answered.values("question_sha256")
        )
