"""Chainable reads of the search log, of judgements, evaluations and saved searches."""

from typing import Any, Self, TypeVar

from django.apps import apps
from django.db import models
from django.db.models import OuterRef, Q, Subquery

from accounts.models import WorkspaceOwnedQuerySet
from accounts.services import principals

M = TypeVar("M", bound=models.Model)


class SavedSearchQuerySet(WorkspaceOwnedQuerySet[M]):
    def visible_to(self, user: Any) -> Self:
        """The user's own rows: other members' are private."""
        rows = super().visible_to(user)
        return rows if rows.query.is_empty() else rows.filter(user=user)


class SearchLogQuerySet(SavedSearchQuerySet[M]):
    def found_nothing(self) -> Self:
        """Searches without any hit, and those a chat could not answer."""
        return self.filter(Q(total=0) | Q(refused=True))


class JudgementQuerySet(WorkspaceOwnedQuerySet[M]):
    """Judgements, readable with their documents."""

    def visible_to(self, user: Any) -> Self:
        """Judgements in the user's workspaces, of documents that the user may read."""
        rows = super().visible_to(user)
        if rows.query.is_empty():
            return rows
        return rows.filter(
            Q(document__access__isnull=True) | Q(document__access__overlap=principals(user))
        )

    def golden(self) -> Self:
        """Judgements of current documents for questions with at least one relevant document.

        Others say what is wrong, not what would be right: no measure can use them.
        """
        answered = self.filter(grade__gt=0, document__is_current=True)
        return self.filter(
            document__is_current=True, question_sha256__in=answered.values("question_sha256")
        )


class EvaluationQuerySet(WorkspaceOwnedQuerySet[M]):
    def done(self) -> Self:
        """Finished ones, which have measures."""
        return self.filter(state="done")

    def open(self) -> Self:
        """Evaluations that are waiting or running."""
        return self.filter(state__in=["waiting", "running"])


class EvaluatedQuestionQuerySet(WorkspaceOwnedQuerySet[M]):
    def with_question(self) -> Self:
        """Annotates `judged_question` from the judgements; None where they are gone."""
        judgements = apps.get_model("search", "Judgement").objects.filter(
            collection=OuterRef("evaluation__collection"),
            question_sha256=OuterRef("question_sha256"),
        )
        return self.annotate(judged_question=Subquery(judgements.values("question")[:1]))
