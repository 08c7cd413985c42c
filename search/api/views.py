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
from drf_spectacular.utils import OpenApiResponse, extend_schema_field
from rest_framework import serializers
from rest_framework.mixins import ListModelMixin
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.reverse import reverse

from accounts.api import (
    ListParameters,
    ResourceViewSet,
    WorkspaceView,
    WorkspaceViewSet,
    operation,
)
from accounts.models import Workspace
from common.errors import NotFound
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
from search.export import download, export_hits
from search.facets import facet_values
from search.forms import MAX_ADDRESS, SearchState
from search.log import record_search
from search.models import EvaluatedQuestion, Evaluation, SavedSearch
from search.query_options import FacetOptions, PageOptions, ScopeOptions, SearchQuery
from search.results import Hit, Scope
from search.services import MAX_NAME_CHARACTERS, save_search, search, update_saved_search
from search.similar import similar_documents, similar_passages
from search.tasks import request_evaluation


def request_scope(user: Any, workspace: Workspace, parameters: Mapping[str, Any]) -> Scope:
    """The scope that validated request `parameters` select, within what the user may see."""
    return ScopeOptions.pick(parameters).scope(user=user, workspace=workspace)


class SearchView(WorkspaceView):
    """Passages that answer a question, best first."""

    for_limited_keys = True
    action_parameters = {"get": SearchParameters}
    required_scope = "read"
    serializer_class = SearchAnswerSerializer

    @operation(operation_id="search")
    def get(self) -> Response:
        """Search."""
        return self._answer(self.parameters)

    @operation(takes=SearchSerializer, operation_id="search_post")
    def post(self, **given: Any) -> Response:
        """Search with a JSON body.

        For questions that are too long for an address, or not for its log.
        """
        return self._answer(given)

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

    @operation(
        gives={
            (200, "text/csv"): OpenApiResponse(OpenApiTypes.STR, description="A line a hit."),
            (200, "application/json"): ExportSerializer,
        },
        operation_id="search_export",
    )
    def get(self) -> StreamingHttpResponse:
        """Export hits as CSV or JSON.

        The first 1,000 hits of one ranking, in the order that `sort` asks for. In CSV, text that a
        spreadsheet would take for a formula has an apostrophe before it.
        """
        asked = self.parameters
        scope = request_scope(self.request.user, self.workspace, asked)
        query = SearchQuery.pick(asked, expand="none")

        def link(hit: Hit) -> str:
            named = {"pk": hit.document_id}
            return str(reverse("api:document-detail", kwargs=named, request=self.request))

        pieces = export_hits(query, scope=scope, kind=asked["as"], link=link)
        return download(pieces, kind=asked["as"])


class FacetsView(WorkspaceView):
    """Values of a facet, for autocompletion."""

    tag = "search"
    for_limited_keys = True
    action_parameters = {"get": FacetParameters}
    required_scope = "read"

    @operation(gives=FacetAnswerSerializer, operation_id="facets")
    def get(self) -> Any:
        """Find values of a facet.

        While one types: the values that hits of `q` have, then others that there are in scope. What
        the filter picks of this facet does not hide its other values.
        """
        asked = FacetOptions.pick(self.parameters)
        scope = request_scope(self.request.user, self.workspace, self.parameters)
        values = facet_values(asked.q, scope=scope, **asked.model_dump(exclude={"q"}))
        return {"facet": asked.facet, "values": values}


class FiltersView(WorkspaceView):
    """Fields that a search can be filtered by."""

    tag = "search"
    for_limited_keys = True
    action_parameters = {"get": FieldsParameters}
    required_scope = "read"

    @operation(gives=FieldsAnswerSerializer, operation_id="filters")
    def get(self) -> Any:
        """List the fields that a search can be filtered by.

        Fields of every search, then the metadata that the newest documents here have, with
        conditions to copy.
        """
        scope = request_scope(self.request.user, self.workspace, self.parameters)
        return {"filters": available_fields(scope)}


class SimilarView(WorkspaceView):
    """Base of the views of what is similar to a document or passage."""

    tag = "search"
    for_limited_keys = True
    action_parameters = {"get": SimilarParameters}
    required_scope = "read"
    serializer_class = SimilarAnswerSerializer
    model: type[Document | Chunk]

    def similar(self, pk: int, find: Callable[..., tuple[Hit, ...]]) -> Response:
        """The response with what `find` finds for the row. Raises NotFound."""
        rows: Any = self.model._default_manager
        rows = rows.visible_to(self.request.user).filter(pk=pk)
        if self.workspace_slug:
            rows = rows.filter(workspace=self.workspace)
        row = rows.select_related("workspace").first()
        if row is None:
            raise NotFound(
                gettext("There is no {model} {pk}.").format(
                    model=self.model._meta.verbose_name, pk=str(pk)
                )
            )
        scope = request_scope(self.request.user, row.workspace, self.parameters)
        answer = SimpleNamespace(hits=find(row, scope=scope, k=self.parameters["k"]))
        return Response(answer_data(SimilarAnswer, answer, request=self.request))


class SimilarDocumentsView(SimilarView):
    """Documents similar to a given one."""

    model = Document

    @operation(operation_id="documents_similar")
    def get(self, pk: int) -> Response:
        """Find documents like one.

        Each by its passage that is most like it. Never the document itself, another version of it,
        or one with the same text. None where no other has anything in common with it.
        """
        return self.similar(pk, similar_documents)


class SimilarPassagesView(SimilarView):
    """Passages similar to a given one."""

    model = Chunk

    @operation(operation_id="chunks_similar")
    def get(self, pk: int) -> Response:
        """Find passages like one.

        Of other documents than its own, and none with the very same text.
        """
        return self.similar(pk, similar_passages)


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


class SavedSearchViewSet(ResourceViewSet):
    """Searches saved under a name. Only their owner sees them."""

    tag = "search"
    nouns = ("saved search", "saved searches")
    queryset = SavedSearch.objects.all()
    serializer_class = SavedSearchSerializer

    @operation(takes=NewSavedSearchSerializer, status=201, errors=(409,), once=True)
    def create(self, **values: Any) -> SavedSearch:
        """Save a search."""
        return save_search(user=self.request.user, workspace=self.workspace, **values)

    @operation(takes=SavedSearchChangeSerializer, errors=(409,))
    def partial_update(self, saved: SavedSearch, **values: Any) -> SavedSearch:
        """Rename a saved search, or save another in its place."""
        return update_saved_search(saved=saved, **values)

    @operation()
    def destroy(self, saved: SavedSearch) -> None:
        """Delete a saved search."""
        saved.delete()


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


class EvaluationViewSet(ListModelMixin, WorkspaceViewSet):
    """Evaluations of collections by their relevance judgements."""

    nouns = ("evaluation", "evaluations")
    queryset = Evaluation.objects.select_related("collection")
    serializer_class = EvaluationSerializer
    editors_only = True
    action_parameters = {"list": EvaluationParameters}

    def narrowed(self, rows: QuerySet[Any], **wanted: Any) -> QuerySet[Any]:
        if slug := wanted.get("collection"):
            wanted["collection"] = get_collection(workspace=self.workspace, slug=slug)
        return super().narrowed(rows, **wanted)

    @operation(takes=EvaluationInput, status=202, errors=(409,), once=True)
    def create(self, *, collection: str) -> Evaluation:
        """Measure a collection.

        A worker asks the questions of its golden set. Read the evaluation again until its `state`
        is `done` or `failed`. One that waits already is answered in its place.
        """
        found = get_collection(workspace=self.workspace, slug=collection)
        return request_evaluation(collection=found, user=self.request.user)

    @operation(gives=EvaluationDetailSerializer)
    def retrieve(self, evaluation: Evaluation) -> Evaluation:
        """Read an evaluation with its questions."""
        return evaluation
