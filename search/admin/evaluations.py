"""Evaluations: what judgements said of a collection's answers, and when."""

from collections.abc import Iterable
from typing import Any, cast

from django.contrib import admin
from django.db.models import Model, QuerySet
from django.http import HttpRequest
from unfold.contrib.filters.admin import AutocompleteSelectFilter
from unfold.decorators import display

from common.admin import ReadOnlyAdmin, deletion_preview, link_to
from search.models import EvaluatedQuestion, Evaluation, Judgement
from search.querysets import EvaluatedQuestionQuerySet

STATE_COLOURS = {
    Evaluation.State.DONE: "success",
    Evaluation.State.FAILED: "danger",
    Evaluation.State.RUNNING: "info",
}


@admin.register(Evaluation)
class EvaluationAdmin(ReadOnlyAdmin):
    """Read only: evaluations are requested on the dashboard, by judging, and daily."""

    list_display = ["number", "collection", "state_label", "cause", "questions"]
    list_display += ["ndcg", "recall", "mrr", "created_at"]
    list_filter = ["state", "cause", ("collection", AutocompleteSelectFilter), "created_at"]
    list_select_related = ["collection"]
    list_heavy_fields = ("error",)
    search_fields = ["collection__name", "collection__slug"]
    ordering = ["-id"]
    fields = ["collection_link", "state", "error", "cause", "user", "questions", "judgements"]
    fields += ["ndcg", "recall", "mrr", "k", "mode", "documents", "chunks", "tuning"]
    fields += ["p50_ms", "p95_ms", "created_at", "finished_at"]

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        return bool(super(ReadOnlyAdmin, self).has_delete_permission(request, obj))

    def get_deleted_objects(
        self, objs: Iterable[Any], request: HttpRequest
    ) -> tuple[list[Any], dict[str, int], set[str], list[Any]]:
        """Counts the questions that are deleted with the evaluations."""
        rows = list(objs)
        questions = EvaluatedQuestion.objects.filter(evaluation__in=[row.pk for row in rows])
        counts = {"evaluations": len(rows), "questions": questions.count()}
        return deletion_preview(self, request, [str(row) for row in rows], counts)

    @display(description="evaluation", ordering="id")
    def number(self, row: Evaluation) -> str:
        return str(row)

    @display(description="state", ordering="state", label=STATE_COLOURS)
    def state_label(self, row: Evaluation) -> tuple[str, str]:
        return row.state, row.get_state_display()

    @display(description="collection")
    def collection_link(self, row: Evaluation) -> str:
        return link_to(row.collection)


@admin.register(EvaluatedQuestion)
class EvaluatedQuestionAdmin(ReadOnlyAdmin):
    """Results of single questions within evaluations."""

    list_display = ["question", "evaluation", "ndcg", "recall", "first_rank", "found", "good"]
    list_filter = [("evaluation__collection", AutocompleteSelectFilter)]
    list_select_related = ["evaluation"]
    search_fields = ["question_sha256"]
    ordering = ["-id"]
    fields = ["question", "evaluation_link", "ndcg", "recall", "first_rank", "found", "good"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        rows = cast("EvaluatedQuestionQuerySet[Any]", super().get_queryset(request))
        return rows.with_question()

    def get_search_results(
        self, request: HttpRequest, queryset: QuerySet[Any], search_term: str
    ) -> tuple[QuerySet[Any], bool]:
        """Searches the text of the questions, which is stored with the judgements."""
        if not search_term:
            return queryset, False
        judged = Judgement.objects.filter(question__icontains=search_term.replace("\0", " "))
        return queryset.filter(question_sha256__in=judged.values("question_sha256")), False

    @display(description="question")
    def question(self, row: Any) -> str:
        return row.judged_question or "no longer judged"

    @display(description="evaluation")
    def evaluation_link(self, row: EvaluatedQuestion) -> str:
        return link_to(row.evaluation)
