"""Addresses of the memory API."""

from django.urls import path

from memory.api import views

# A path, because keys chosen by clients may contain slashes.
FACT_PATH = "memory/facts/<path:key>"

urlpatterns = [
    path("memory/", views.EraseView.as_view(), name="memory"),
    path("memory/search/", views.SearchView.as_view(), name="memory-search"),
    path(
        "memory/contexts/",
        views.ContextViewSet.as_view({"get": "list", "post": "create"}),
        name="memory-contexts",
    ),
    path(
        "memory/contexts/clear/",
        views.ContextViewSet.as_view({"post": "clear"}),
        name="memory-clear",
    ),
    path(
        "memory/contexts/<int:context_id>/",
        views.ContextViewSet.as_view({"get": "retrieve", "delete": "destroy"}, detail=True),
        name="memory-context",
    ),
    path("memory/facts/", views.FactViewSet.as_view({"get": "list"}), name="memory-facts"),
    path(
        f"{FACT_PATH}/clear/",
        views.FactViewSet.as_view({"post": "clear"}),
        name="memory-fact-clear",
    ),
    path(
        f"{FACT_PATH}/history/",
        views.FactViewSet.as_view({"get": "history"}, ordering=("-valid_from", "-id")),
        name="memory-fact-history",
    ),
    path(
        f"{FACT_PATH}/",
        views.FactViewSet.as_view({"get": "retrieve", "put": "update", "delete": "destroy"}),
        name="memory-fact",
    ),
    path("memory/inject/", views.InjectView.as_view(), name="memory-inject"),
    path(
        "memory/conversations/",
        views.ConversationViewSet.as_view({"get": "list", "post": "create"}),
        name="memory-conversations",
    ),
    path(
        "memory/conversations/<int:conversation_id>/retry/",
        views.ConversationViewSet.as_view({"post": "retry"}, detail=True),
        name="memory-conversation-retry",
    ),
    path("memory/usage/", views.UsageView.as_view(), name="memory-usage"),
    path("memory/export/", views.ExportView.as_view(), name="memory-export"),
]
