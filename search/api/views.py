"""Search: the request is handed to the service, its answer put into JSON."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.api import WorkspaceView
from common.api import ErrorSerializer
from common.errors import InvalidInput
from search.api import examples
from search.api.inputs import SearchInput, SearchParameters
from search.api.serializers import SearchAnswerSerializer
from search.log import record_search
from search.services import scope_for, search

#: What is handed on to the service as it is.
OPTIONS = (
    "mode",
    "k",
    "offset",
    "fusion",
    "weights",
    "rerank",
    "min_similarity",
    "min_rerank",
    "diversify",
    "expand",
    "group",
)


@extend_schema(tags=["search"], responses={200: SearchAnswerSerializer, 503: ErrorSerializer})
class SearchView(WorkspaceView):
    """Passages that answer a question, best first."""

    action_parameters = {"get": SearchParameters}

    @extend_schema(operation_id="search", summary="Search", examples=[examples.ANSWER])
    def get(self, request: Request) -> Response:
        return self._answer(self.parameters)

    @extend_schema(
        operation_id="search_post",
        summary="Search with a JSON body",
        description="For questions that are too long for an address, or not for its log.",
        request=SearchInput,
        examples=[examples.QUESTION, examples.ANSWER],
    )
    def post(self, request: Request) -> Response:
        body = SearchInput(data=request.data)
        body.is_valid(raise_exception=True)
        return self._answer(body.validated_data)

    def _answer(self, asked: dict[str, Any]) -> Response:
        scope = scope_for(
            user=self.request.user,
            workspace=self.workspace,
            collections=tuple(asked.get("collection", ())),
            filter=asked.get("filter"),
            media_types=tuple(asked.get("type", ())),
            versions=asked["versions"],
        )
        options = {name: asked[name] for name in OPTIONS if name in asked}
        try:
            result = search(asked["q"], scope=scope, facets=asked.get("facet", ()), **options)
        except InvalidInput as error:
            # The service calls the question `query`, the request calls it `q`.
            field = "q" if error.field == "query" else error.field
            raise InvalidInput(str(error), field=field) from error
        record_search(result=result, scope=scope, user=self.request.user, source="api")
        context = {"request": self.request, "explain": asked["explain"]}
        return Response(SearchAnswerSerializer(result, context=context).data)
