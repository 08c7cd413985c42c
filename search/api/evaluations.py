"""Evaluations: how good a collection's answers were, asked for and read."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import (
    OpenApiExample,
    extend_schema,
    extend_schema_field,
    extend_schema_serializer,
)
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api import WorkspaceParameters, WorkspaceViewSet, once
from common.api import ErrorSerializer
from common.serializers import PageParameters, StrictSerializer
from documents.models import Collection
from documents.services import get_collection
from search.measuring import request_evaluation
from search.models import EvaluatedQuestion, Evaluation

ASKED = OpenApiExample("Measure the collection", {"collection": "leaflets"}, request_only=True)


class EvaluationFilter(PageParameters, WorkspaceParameters):
    """Which evaluations."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Slug of the collection. Default: all."
    )


class EvaluationInput(StrictSerializer):
    """What is to be measured."""

    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")


@extend_schema_serializer(component_name="Evaluation")
class EvaluationSerializer(serializers.ModelSerializer[Evaluation]):
    """Means over the golden set; null until they are measured."""

    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)

    class Meta:
        model = Evaluation
        fields = [
            *("id", "collection", "cause", "state", "error_code", "error"),
            *("questions", "judgements", "documents", "chunks", "mode", "k"),
            *("ndcg", "recall", "mrr", "p50_ms", "p95_ms"),
            *("created_at", "finished_at"),
        ]
        read_only_fields = fields
        extra_kwargs = {
            "ndcg": {"help_text": "nDCG@10, 0 to 1: good answers stand high."},
            "recall": {"help_text": "Recall@10, 0 to 1: good answers are among the first ten."},
            "mrr": {"help_text": "Mean of 1 divided by the place of the first good answer."},
        }


@extend_schema_serializer(component_name="EvaluatedQuestion")
class EvaluatedQuestionSerializer(serializers.ModelSerializer[EvaluatedQuestion]):
    """One question and how it was answered."""

    question = serializers.CharField(
        source="judged_question",
        allow_null=True,
        help_text="Null where it is not judged any more.",
    )

    class Meta:
        model = EvaluatedQuestion
        fields = ["question", "ndcg", "recall", "first_rank", "good", "found"]
        read_only_fields = fields


@extend_schema_serializer(component_name="EvaluationDetail")
class EvaluationDetailSerializer(EvaluationSerializer):
    """With its questions, worst first; none where it is long past."""

    rows = serializers.SerializerMethodField(help_text="1,000 questions at most.")

    class Meta(EvaluationSerializer.Meta):
        fields = [*EvaluationSerializer.Meta.fields, "rows"]
        read_only_fields = fields

    @extend_schema_field(EvaluatedQuestionSerializer(many=True))
    def get_rows(self, evaluation: Evaluation) -> Any:
        rows = EvaluatedQuestion.objects.filter(evaluation=evaluation).with_question()
        return EvaluatedQuestionSerializer(rows.order_by("ndcg", "id"), many=True).data


@extend_schema(tags=["evaluations"])
class EvaluationViewSet(WorkspaceViewSet):
    """How good the answers of collections were, by what people judged."""

    serializer_class = EvaluationSerializer
    lookup_value_converter = "int"
    action_parameters = {"list": EvaluationFilter}

    def get_queryset(self) -> QuerySet[Evaluation]:
        rows = Evaluation.objects.visible_to(self.request.user).select_related("collection")
        return self.in_workspace(rows)

    @extend_schema(summary="List evaluations, newest first")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        rows = self.get_queryset()
        if slug := self.parameters.get("collection"):
            rows = rows.filter(collection=get_collection(workspace=self.workspace, slug=slug))
        return self.page(rows)

    @extend_schema(
        summary="Measure a collection",
        description="A worker asks the questions of its golden set. Read the evaluation again until"
        " its `state` is `done` or `failed`. One that waits already is answered in its place.",
        request=EvaluationInput,
        responses={202: EvaluationSerializer, 409: ErrorSerializer},
        examples=[ASKED],
    )
    @once
    def create(self, *args: Any, **kwargs: Any) -> Response:
        self.require_editor(self.workspace)
        slug = self.validated(EvaluationInput)["collection"]
        collection = get_collection(workspace=self.workspace, slug=slug)
        return self.answer(
            request_evaluation(collection=collection, user=self.request.user), status=202
        )

    @extend_schema(
        summary="Read an evaluation with its questions", responses=EvaluationDetailSerializer
    )
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return Response(EvaluationDetailSerializer(self.get_object()).data)
