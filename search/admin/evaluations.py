"""Evaluations: what judgements said of a collection's answers, and when."""

from typing import Any, cast

from django.contrib import admin
from django.db.models import QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import DeletionPreview, ReadOnlyAdmin, choice_column, link_column
from search.models import EvaluatedQuestion, Evaluation, Judgement
from search.querysets import EvaluatedQuestionQuerySet

STATE_COLOURS = {
    Evaluation.State.DONE: "success",
    Evaluation.State.FAILED: "danger",
    Evaluation.State.RUNNING: "info",
}


@admin.register(Evaluation)
class EvaluationAdmin(DeletionPreview, ReadOnlyAdmin):
    """Read only: evaluations are requested on the dashboard, by judging, and daily."""

    list_display = ["number", "collection", "state_label", "cause", "questions"]
    list_display += ["ndcg", "recall", "mrr", "created_at"]
    list_filter = ["state", "cause", ("collection", AutocompleteSelectFilter), "created_at"]
    list_select_related = ["collection"]
    list_heavy_fields = ("error",)
    search_fields = ["collection__name", "collection__slug"]
    ordering = ["-id"]
    can_delete = True
    collection_link = link_column("collection")
    state_label = choice_column("state", STATE_COLOURS)
    fields = ["collection_link", "state", "error", "cause", "user", "questions", "judgements"]
    fields += ["ndcg", "recall", "mrr", "k", "mode", "documents", "chunks", "tuning"]
    fields += ["p50_ms", "p95_ms", "created_at", "finished_at"]

    def deletion_counts(self, rows: list[Evaluation]) -> dict[str, int]:
        """With the questions that are deleted with the evaluations."""
        questions = EvaluatedQuestion.objects.filter(evaluation__in=[row.pk for row in rows])
        return {**super().deletion_counts(rows), "questions": questions.count()}

    @display(description="evaluation", ordering="id")
    def number(self, row: Evaluation) -> str:
        return str(row)


@admin.register(EvaluatedQuestion)
class EvaluatedQuestionAdmin(ReadOnlyAdmin):
    """Results of single questions within evaluations."""

    list_display = ["question", "evaluation", "ndcg", "recall", "first_rank", "found", "good"]
    list_filter = [("evaluation__collection", AutocompleteSelectFilter)]
    list_select_related = ["evaluation"]
    search_fields = ["question_sha256"]
    ordering = ["-id"]
    evaluation_link = link_column("evaluation")
    fields = ["question", "evaluation_link", "ndcg", "recall", "first_rank", "found", "good"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = cast("EvaluatedQuestionQuerySet[Any]", super().get_queryset(request))
        return rows.with_question()

    def search_rows(self, rows: QuerySet[Any], term: str) -> QuerySet[Any]:
        """Searches the text of the questions, which is stored with the judgements."""
        judged = Judgement.objects.filter(question__icontains=term.replace("\0", " "))
        return rows.filter(question_sha256__in=judged.values("question_sha256"))

    @display(description="question")
    def question(self, row: Any) -> str:
        return row.judged_question or "no longer judged"
