"""API views of search, facets, similar documents, saved searches and evaluations.
Begin with `SearchView`.
"""

from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any

from django import urls
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from django.utils.translation import gettext
from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import (
    OpenApiResponse,
    extend_schema,
    extend_schema_field,
    extend_schema_view,
)
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin, RetrieveModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from accounts.api import ListParameters, WorkspaceView, WorkspaceViewSet, idempotent
from accounts.models import Workspace
from common.api import ErrorSerializer
from common.errors import NotFound
from common.openapi import load_examples
from common.serializers import ReadOnlyModelSerializer, StrictSerializer
from documents.models import Chunk, Collection, Document
from documents.services import get_collection
from search.api.inputs import (
    ExportParameters,
    FacetParameters,
    FieldsParameters,
    SearchParameters,
    SearchSerializer,
    SimilarParameters,
)
from search.api.serializers import (
    ExportSerializer,
    FacetAnswerSerializer,
    FieldsAnswerSerializer,
    SearchAnswerSerializer,
    SimilarAnswer,
    SimilarAnswerSerializer,
    answer_data,
    search_answer,
)
from search.available_fields import available_fields
from search.export import MAX_EXPORTED_HITS, download, export_hits
from search.facets import facet_values
from search.forms import MAX_ADDRESS, SearchState
from search.log import record_search
from search.models import EvaluatedQuestion, Evaluation, SavedSearch
from search.query_options import FacetOptions, PageOptions, ScopeOptions, SearchQuery
from search.results import Hit, Scope
from search.services import MAX_NAME_CHARACTERS, save_search, search, update_saved_search
from search.similar import similar_documents, similar_passages
from search.tasks import request_evaluation

examples = load_examples("search.api")


def request_scope(user: Any, workspace: Workspace, parameters: Mapping[str, Any]) -> Scope:
    """The scope that validated request `parameters` select, within what the user may see."""
    return ScopeOptions.pick(parameters).scope(user=user, workspace=workspace)


@extend_schema(tags=["search"], responses={200: SearchAnswerSerializer, 503: ErrorSerializer})
class SearchView(WorkspaceView):
    """Passages that answer a question, best first."""

    for_limited_keys = True
    action_parameters = {"get": SearchParameters}
    required_scope = "read"

    @extend_schema(operation_id="search", summary="Search", examples=[examples.ANSWER])
    def get(self, request: Request) -> Response:
        return self._answer(self.parameters)

    @extend_schema(
        operation_id="search_post",
        summary="Search with a JSON body",
        description="For questions that are too long for an address, or not for its log.",
        request=SearchSerializer,
        examples=[examples.QUESTION, examples.ANSWER],
    )
    def post(self, request: Request) -> Response:
        return self._answer(self.validated(SearchSerializer))

    def _answer(self, given: dict[str, Any]) -> Response:
        scope = request_scope(self.request.user, self.workspace, given)
        page = PageOptions.pick(given).model_dump()
        result = search(SearchQuery.pick(given), scope=scope, **page)
        record_search(result=result, scope=scope, user=self.request.user, source="api")
        return Response(search_answer(result, request=self.request, explain=given["explain"]))


class ExportView(WorkspaceView):
    """Hits of a search as a CSV or JSON file."""

    for_limited_keys = True
    action_parameters = {"get": ExportParameters}
    required_scope = "read"

    def perform_content_negotiation(self, request: Request, force: bool = False) -> Any:
        """`as` decides the format, whatever the Accept header says; errors are JSON."""
        return super().perform_content_negotiation(request, force=True)

    @extend_schema(
        tags=["search"],
        operation_id="search_export",
        summary="Export hits as CSV or JSON",
        description=f"The first {MAX_EXPORTED_HITS:,} hits of one ranking, in the order"
        " that `sort` asks"
        " for. In CSV, text that a spreadsheet would take for a formula has an apostrophe before"
        " it.",
        responses={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="A line a hit."),
            (200, "application/json"): ExportSerializer,
            503: ErrorSerializer,
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        asked = self.parameters
        scope = request_scope(request.user, self.workspace, asked)
        query = SearchQuery.pick(asked, expand="none")

        def link(hit: Hit) -> str:
            named = {"pk": hit.document_id}
            return str(reverse("api:document-detail", kwargs=named, request=self.request))

        pieces = export_hits(query, scope=scope, kind=asked["as"], link=link)
        return download(pieces, kind=asked["as"])


class FacetsView(WorkspaceView):
    """Values of a facet, for autocompletion."""

    for_limited_keys = True
    action_parameters = {"get": FacetParameters}
    required_scope = "read"

    @extend_schema(
        tags=["search"],
        operation_id="facets",
        summary="Find values of a facet",
        description="While one types: the values that hits of `q` have, then others that there are"
        " in scope. What the filter picks of this facet does not hide its other values.",
        responses={200: FacetAnswerSerializer, 503: ErrorSerializer},
        examples=[examples.FACET],
    )
    def get(self, request: Request) -> Response:
        asked = FacetOptions.pick(self.parameters)
        scope = request_scope(request.user, self.workspace, self.parameters)
        values = facet_values(asked.q, scope=scope, **asked.model_dump(exclude={"q"}))
        return Response(FacetAnswerSerializer({"facet": asked.facet, "values": values}).data)


class FiltersView(WorkspaceView):
    """Fields that a search can be filtered by."""

    for_limited_keys = True
    action_parameters = {"get": FieldsParameters}
    required_scope = "read"

    @extend_schema(
        tags=["search"],
        operation_id="filters",
        summary="List the fields that a search can be filtered by",
        description="Fields of every search, then the metadata that the newest documents here"
        " have, with conditions to copy.",
        responses={200: FieldsAnswerSerializer},
        examples=[examples.FIELDS],
    )
    def get(self, request: Request) -> Response:
        scope = request_scope(request.user, self.workspace, self.parameters)
        return Response(FieldsAnswerSerializer({"filters": available_fields(scope)}).data)


class SimilarView(WorkspaceView):
    """Base of the views of what is similar to a document or passage."""

    for_limited_keys = True
    action_parameters = {"get": SimilarParameters}
    required_scope = "read"
    model: type[Document | Chunk]
    find: Callable[..., tuple[Hit, ...]]

    def get(self, request: Request, pk: int) -> Response:
        rows: Any = self.model._default_manager
        rows = rows.visible_to(request.user).filter(pk=pk)
        if self.workspace_slug:
            rows = rows.filter(workspace=self.workspace)
        row = rows.select_related("workspace").first()
        if row is None:
            raise NotFound(
                gettext("There is no {model} {pk}.").format(
                    model=self.model._meta.verbose_name, pk=str(pk)
                )
            )
        scope = request_scope(request.user, row.workspace, self.parameters)
        found = self.find(row, scope=scope, k=self.parameters["k"])
        answer = SimpleNamespace(hits=found)
        return Response(answer_data(SimilarAnswer, answer, request=self.request))


@extend_schema_view(
    get=extend_schema(
        tags=["search"],
        operation_id="documents_similar",
        summary="Find documents like one",
        description="Each by its passage that is most like it. Never the document itself, another"
        " version of it, or one with the same text. None where no other has anything in common"
        " with it.",
        responses={200: SimilarAnswerSerializer},
        examples=[examples.SIMILAR],
    )
)
class SimilarDocumentsView(SimilarView):
    """Documents similar to a given one."""

    model, find = Document, staticmethod(similar_documents)


@extend_schema_view(
    get=extend_schema(
        tags=["search"],
        operation_id="chunks_similar",
        summary="Find passages like one",
        description="Of other documents than its own, and none with the very same text.",
        responses={200: SimilarAnswerSerializer},
        examples=[examples.SIMILAR],
    )
)
class SimilarPassagesView(SimilarView):
    """Passages similar to a given one."""

    model, find = Chunk, staticmethod(similar_passages)


PARAMETERS_HELP = (
    "The address of the search page behind its `?`: `q`, `mode`, `sort`, `collection`, `type`,"
    " `filter`, and `group=0` or `rerank=0`. Other names are dropped."
)


class SavedSearchSerializer(ReadOnlyModelSerializer[SavedSearch]):
    """A saved search with its name and its page."""

    page = serializers.SerializerMethodField(help_text="The page that runs it.")

    class Meta:
        model = SavedSearch
        fields = ["id", "name", "parameters", "page", "created_at", "updated_at"]
        extra_kwargs = {"parameters": {"help_text": PARAMETERS_HELP}}

    def get_page(self, row: SavedSearch) -> str:
        address: str = self.context["request"].build_absolute_uri(urls.reverse("search"))
        return f"{address}?{row.parameters}"


class ParametersField(serializers.CharField):
    """Query string of the search page, normalised as the page writes it."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_ADDRESS, help_text=PARAMETERS_HELP, **options)

    def to_internal_value(self, data: Any) -> str:
        state = SearchState.parse(super().to_internal_value(data).lstrip("?"))
        return state.saved_parameters


class NewSavedSearchSerializer(StrictSerializer):
    """Name and parameters of a search to save."""

    name = serializers.CharField(max_length=MAX_NAME_CHARACTERS, help_text="One of your own.")
    parameters = ParametersField()


class SavedSearchChangeSerializer(StrictSerializer):
    """New name or parameters; what is left out stays."""

    name = serializers.CharField(max_length=MAX_NAME_CHARACTERS, required=False)
    parameters = ParametersField(required=False)


@extend_schema(tags=["search"])
class SavedSearchViewSet(ListModelMixin, RetrieveModelMixin, WorkspaceViewSet):
    """Searches saved under a name. Only their owner sees them."""

    summaries = {
        "list": "List your saved searches, newest first",
        "retrieve": "Read a saved search",
    }
    serializer_class = SavedSearchSerializer
    lookup_value_converter = "int"

    def get_queryset(self) -> QuerySet[SavedSearch]:
        return self.in_workspace(SavedSearch.objects.visible_to(self.request.user))

    @extend_schema(
        summary="Save a search",
        request=NewSavedSearchSerializer,
        responses={201: SavedSearchSerializer, 409: ErrorSerializer},
        examples=[examples.SAVED],
    )
    @idempotent
    def create(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(NewSavedSearchSerializer)
        row = save_search(user=self.request.user, workspace=self.workspace, **values)
        return self.answer(row, status=201)

    @extend_schema(
        summary="Rename a saved search, or save another in its place",
        request=SavedSearchChangeSerializer,
        responses={200: SavedSearchSerializer, 409: ErrorSerializer},
        examples=[examples.RENAMED],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(SavedSearchChangeSerializer)
        return self.answer(update_saved_search(saved=self.get_object(), **values))

    @extend_schema(summary="Delete a saved search")
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        self.get_object().delete()
        return Response(status=204)


class EvaluationParameters(ListParameters):
    """Query string of the list of evaluations."""

    collection = serializers.SlugField(
        required=False, max_length=63, help_text="Slug of the collection. Default: all."
    )


class EvaluationInput(StrictSerializer):
    """Body that names the collection to evaluate."""

    collection = serializers.SlugField(max_length=63, help_text="Slug of the collection.")


class EvaluationSerializer(ReadOnlyModelSerializer[Evaluation]):
    """Means over the golden set; null until the evaluation is done."""

    collection = serializers.SlugRelatedField[Collection](slug_field="slug", read_only=True)

    class Meta:
        model = Evaluation
        fields = [
            *("id", "collection", "cause", "state", "error_code", "error"),
            *("questions", "judgements", "documents", "chunks", "mode", "k"),
            *("ndcg", "recall", "mrr", "p50_ms", "p95_ms"),
            *("created_at", "finished_at"),
        ]
        extra_kwargs = {
            "ndcg": {"help_text": "nDCG@10, 0 to 1: good answers stand high."},
            "recall": {"help_text": "Recall@10, 0 to 1: good answers are among the first ten."},
            "mrr": {"help_text": "Mean of 1 divided by the place of the first good answer."},
        }


class EvaluatedQuestionSerializer(ReadOnlyModelSerializer[EvaluatedQuestion]):
    """One question with its measures."""

    question = serializers.CharField(
        source="judged_question",
        allow_null=True,
        help_text="Null where it is not judged any more.",
    )

    class Meta:
        model = EvaluatedQuestion
        fields = ["question", "ndcg", "recall", "first_rank", "good", "found"]


class EvaluationDetailSerializer(EvaluationSerializer):
    """With its questions, worst first; old evaluations have none."""

    rows = serializers.SerializerMethodField(help_text="1,000 questions at most.")

    class Meta(EvaluationSerializer.Meta):
        fields = [*EvaluationSerializer.Meta.fields, "rows"]

    @extend_schema_field(EvaluatedQuestionSerializer(many=True))
    def get_rows(self, evaluation: Evaluation) -> Any:
        rows = EvaluatedQuestion.objects.filter(evaluation=evaluation).with_question()
        return EvaluatedQuestionSerializer(rows.order_by("ndcg", "id"), many=True).data


@extend_schema(tags=["evaluations"])
class EvaluationViewSet(WorkspaceViewSet):
    """Evaluations of collections by their relevance judgements."""

    serializer_class = EvaluationSerializer
    lookup_value_converter = "int"
    action_parameters = {"list": EvaluationParameters}

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
        examples=[examples.EVALUATION],
    )
    @idempotent
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
