"""What a search can be narrowed by: fields, and values of one."""

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.api import ErrorSerializer
from search.api import examples
from search.api.inputs import FacetParameters, FieldsParameters
from search.api.scoping import asked_scope, called_q
from search.api.serializers import FacetAnswerSerializer, FieldsAnswerSerializer
from search.facet_values import facet_values
from search.fields_here import fields_here


class FacetsView(WorkspaceView):
    """Values of a facet."""

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
        asked = self.parameters
        with called_q():
            values = facet_values(
                asked["q"],
                scope=asked_scope(request.user, self.workspace, asked),
                facet=asked["facet"],
                prefix=asked["prefix"],
                mode=asked["mode"],
                group=asked["group"],
                limit=asked["limit"],
            )
        return Response(FacetAnswerSerializer({"facet": asked["facet"], "values": values}).data)


class FiltersView(WorkspaceView):
    """Fields to filter by."""

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
        scope = asked_scope(request.user, self.workspace, self.parameters)
        return Response(FieldsAnswerSerializer({"filters": fields_here(scope)}).data)
