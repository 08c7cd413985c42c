"""Addresses of the memory API."""

from django.urls import path
from rest_framework.routers import SimpleRouter

from memory.api import views

router = SimpleRouter(use_regex_path=False)
router.register("memory/contexts", views.ContextViewSet, basename="memory-context")
router.register("memory/conversations", views.ConversationViewSet, basename="memory-conversation")

# A path, because keys chosen by clients may contain slashes.
FACT_PATH = "memory/facts/<path:key>"

urlpatterns = [
    *router.urls,
    path("memory/", views.EraseView.as_view(), name="memory"),
    path("memory/search/", views.SearchView.as_view(), name="memory-search"),
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
    path("memory/usage/", views.UsageView.as_view(), name="memory-usage"),
    path("memory/export/", views.ExportView.as_view(), name="memory-export"),
]
