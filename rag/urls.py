"""Pages of chat and pipelines, and doors that other software expects at the root."""

from django.urls import URLPattern, URLResolver, include, path, re_path

from rag.mcp.views import McpView

urlpatterns: list[URLPattern | URLResolver] = [
    path("", include("rag.views.urls")),
    path("", include("rag.openai.urls")),
    re_path(r"^mcp/?$", McpView.as_view(), name="mcp"),
]
