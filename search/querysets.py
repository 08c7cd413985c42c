"""Chainable reads of the search log, of judgements, evaluations and saved searches."""

from typing import Any, Self, TypeVar

from django.apps import apps
from django.db import models
from django.db.models import OuterRef, Q, Subquery

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
        """Questions without any hit, and those that a chat found no answer to."""
        return self.filter(Q(total=0) | Q(refused=True))


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


class EvaluationQuerySet(WorkspaceOwnedQuerySet[M]):
    """Measurements by judgements."""

    def done(self) -> Self:
        """Those with figures."""
        return self.filter(state="done")

    def open(self) -> Self:
        """Those that wait or run."""
        return self.filter(state__in=["waiting", "running"])


class SavedSearchQuerySet(WorkspaceOwnedQuerySet[M]):
    """Searches kept by name."""

    def visible_to(self, user: Any) -> Self:
        """The user's own."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(user=user)


class EvaluatedQuestionQuerySet(WorkspaceOwnedQuerySet[M]):
    """Single questions of evaluations."""

    def with_question(self) -> Self:
        """With `judged_question`, which the judgements hold; None where there are none any more."""
        judgements = apps.get_model("search", "Judgement").objects.filter(
            collection=OuterRef("evaluation__collection"),
            question_sha256=OuterRef("question_sha256"),
        )
        return self.annotate(judged_question=Subquery(judgements.values("question")[:1]))
