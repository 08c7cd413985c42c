"""The JSON API under `/api/`: version 1, its description, and a page to try it."""

from typing import Any

from django.urls import include, path, re_path
from drf_spectacular.utils import extend_schema
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.views import APIView

from common.errors import NotFound


@extend_schema(exclude=True)
class NothingHere(APIView):
    """Any other address below `/api/`: the error in JSON rather than a page."""

    authentication_classes = []
    permission_classes = []

    def initial(self, request: Request, *args: Any, **kwargs: Any) -> None:
        raise NotFound(
            f"There is nothing at {request.path}. Addresses end in a slash; /api/docs/ lists them."
        )


version_1 = [
    path("", include("accounts.api.urls")),
    path("", include("documents.api.urls")),
    path("", include("search.api.urls")),
    path("", include("memory.api.urls")),
    path("", include("graph.api.urls")),
    path("", include("rag.api.urls")),
    path("", include("dashboard.api.urls")),
]

urlpatterns = [
    path("v1/", include((version_1, "api"))),
    path("schema/", SpectacularAPIView.as_view(), name="api-schema"),
    path("docs/", SpectacularSwaggerSplitView.as_view(url_name="api-schema"), name="api-docs"),
    re_path(r"", NothingHere.as_view()),
]
