"""Saved searches of the user who asks: nobody else's are there."""

from typing import Any

from django.db.models import QuerySet
from django.urls import reverse
from drf_spectacular.utils import OpenApiExample, extend_schema, extend_schema_serializer
from rest_framework import serializers
from rest_framework.response import Response

from accounts.api import WorkspaceParameters, WorkspaceViewSet, once
from common.api import ErrorSerializer
from common.serializers import PageParameters, StrictSerializer
from search.forms import MAX_ADDRESS, SearchState
from search.models import SavedSearch
from search.saved import MAX_NAME_CHARACTERS, change_search, save_search

PARAMETERS = (
    "The address of the search page behind its `?`: `q`, `mode`, `sort`, `collection`, `type`,"
    " `filter`, and `group=0` or `rerank=0`. Other names are dropped."
)
SAVED = OpenApiExample(
    "German guides since 2020",
    {"name": "German guides", "parameters": "q=insulin&filter=year>=2020; lang=de"},
    request_only=True,
)
RENAMED = OpenApiExample("Rename", {"name": "Guides"}, request_only=True)


class SavedFilter(PageParameters, WorkspaceParameters):
    """Which saved searches."""


@extend_schema_serializer(component_name="SavedSearch")
class SavedSearchSerializer(serializers.ModelSerializer[SavedSearch]):
    """A search with a name."""

    page = serializers.SerializerMethodField(help_text="The page that runs it.")

    class Meta:
        model = SavedSearch
        fields = ["id", "name", "parameters", "page", "created_at", "updated_at"]
        read_only_fields = fields
        extra_kwargs = {"parameters": {"help_text": PARAMETERS}}

    def get_page(self, row: SavedSearch) -> str:
        address: str = self.context["request"].build_absolute_uri(reverse("search"))
        return f"{address}?{row.parameters}"


class ParametersField(serializers.CharField):
    """An address behind its `?`, as the search page would write it itself."""

    def __init__(self, **options: Any) -> None:
        super().__init__(max_length=MAX_ADDRESS, help_text=PARAMETERS, **options)

    def to_internal_value(self, data: Any) -> str:
        state = SearchState.parse(super().to_internal_value(data).lstrip("?"))
        return state.kept_parameters


@extend_schema_serializer(component_name="NewSavedSearch")
class NewSavedSearchInput(StrictSerializer):
    """A search to be saved."""

    name = serializers.CharField(max_length=MAX_NAME_CHARACTERS, help_text="One of your own.")
    parameters = ParametersField()


@extend_schema_serializer(component_name="SavedSearchChange")
class SavedSearchChange(StrictSerializer):
    """What is to be another."""

    name = serializers.CharField(max_length=MAX_NAME_CHARACTERS, required=False)
    parameters = ParametersField(required=False)


@extend_schema(tags=["search"])
class SavedSearchViewSet(WorkspaceViewSet):
    """Searches that you keep by name. Only you see them."""

    serializer_class = SavedSearchSerializer
    lookup_value_converter = "int"
    action_parameters = {"list": SavedFilter}

    def get_queryset(self) -> QuerySet[SavedSearch]:
        return self.in_workspace(SavedSearch.objects.visible_to(self.request.user))

    @extend_schema(summary="List your saved searches, newest first")
    def list(self, *args: Any, **kwargs: Any) -> Response:
        return self.page(self.get_queryset())

    @extend_schema(
        summary="Save a search",
        request=NewSavedSearchInput,
        responses={201: SavedSearchSerializer, 409: ErrorSerializer},
        examples=[SAVED],
    )
    @once
    def create(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(NewSavedSearchInput)
        row = save_search(user=self.request.user, workspace=self.workspace, **values)
        return self.answer(row, status=201)

    @extend_schema(summary="Read a saved search")
    def retrieve(self, *args: Any, **kwargs: Any) -> Response:
        return self.answer(self.get_object())

    @extend_schema(
        summary="Rename a saved search, or save another in its place",
        request=SavedSearchChange,
        responses={200: SavedSearchSerializer, 409: ErrorSerializer},
        examples=[RENAMED],
    )
    def partial_update(self, *args: Any, **kwargs: Any) -> Response:
        values = self.validated(SavedSearchChange)
        return self.answer(change_search(saved=self.get_object(), **values))

    @extend_schema(summary="Delete a saved search")
    def destroy(self, *args: Any, **kwargs: Any) -> Response:
        self.get_object().delete()
        return Response(status=204)
