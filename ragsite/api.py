"""The JSON API under `/api/`: index, version 1, OpenAPI description, and Swagger UI."""

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from django.http import HttpResponseBase
from django.shortcuts import redirect
from django.urls import URLPattern, URLResolver, include, path, re_path, reverse
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext
from drf_spectacular.generators import SchemaGenerator as SpectacularSchemaGenerator
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from common.api import StreamNegotiation
from common.errors import NotFound


class ApiIndex(APIView):
    """Index of the API: JSON for programs, Swagger UI for browsers. It needs no login."""

    schema = None
    authentication_classes = []
    permission_classes = []
    content_negotiation_class = StreamNegotiation

    def get(self, request: Request) -> HttpResponseBase:
        """`resources` are the addresses of version 1 without path parameters."""
        answer: HttpResponseBase
        if request.get_preferred_type(["application/json", "text/html"]) == "text/html":
            answer = redirect("api-docs")
        else:
            base = reverse("api-v1")
            answer = Response(
                {
                    "version": "v1",
                    "docs": request.build_absolute_uri(reverse("api-docs")),
                    "schema": request.build_absolute_uri(reverse("api-schema")),
                    "resources": {
                        route.removesuffix("/"): request.build_absolute_uri(base + route)
                        for route in sorted(_routes(version_1))
                        if "<" not in route
                    },
                }
            )
        patch_vary_headers(answer, ["Accept"])
        return answer


def _routes(patterns: Iterable[URLPattern | URLResolver], above: str = "") -> Iterator[str]:
    for each in patterns:
        route = above + str(each.pattern)
        if isinstance(each, URLResolver):
            yield from _routes(each.url_patterns, route)
        else:
            yield route


class SchemaGenerator(SpectacularSchemaGenerator):
    """Describes the API once a process: that takes half a second and is the same for everybody."""

    _schema: ClassVar[dict[str, Any] | None] = None

    def get_schema(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        cls = type(self)
        if cls._schema is None:
            cls._schema = super().get_schema(*args, **kwargs)  # type: ignore[no-untyped-call]
        return cls._schema


class ApiNotFound(APIView):
    """Any other address below `/api/`: a JSON error rather than a page."""

    schema = None
    authentication_classes = []
    permission_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            gettext(
                "There is nothing at {path}. Addresses end with a slash; /api/docs/ lists them."
            ).format(path=request.path)
        )


version_1 = [
    path("", include("accounts.api.urls")),
    path("", include("documents.api.urls")),
    path("", include("sources.api.urls")),
    path("", include("model_servers.api.urls")),
    path("", include("search.api.urls")),
    path("", include("memory.api.urls")),
    path("", include("graph.api.urls")),
    path("", include("tables.api.urls")),
    path("", include("rag.api.urls")),
    path("", include("dashboard.api")),
]

urlpatterns = [
    path("", ApiIndex.as_view(), name="api-index"),
    path("v1/", ApiIndex.as_view(), name="api-v1"),
    path("v1/", include((version_1, "api"))),
    path(
        "schema/",
        SpectacularAPIView.as_view(generator_class=SchemaGenerator),
        name="api-schema",
    ),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
    re_path(r"", ApiNotFound.as_view()),
]
