"""Addresses of the memory API."""

from django.urls import path

from memory.api import views

# A path, because keys chosen by clients may contain slashes.
FACT_PATH = "memory/facts/<path:key>"

urlpatterns = [
    path("memory/", views.EraseView.as_view(), name="memory"),
    path("memory/search/", views.SearchView.as_view(), name="memory-search"),
    path("memory/contexts/", views.ContextsView.as_view(), name="memory-contexts"),
    path("memory/contexts/clear/", views.ContextsClearView.as_view(), name="memory-clear"),
    path("memory/contexts/<int:context_id>/", views.ContextView.as_view(), name="memory-context"),
    path("memory/facts/", views.FactsView.as_view(), name="memory-facts"),
    path(f"{FACT_PATH}/clear/", views.FactClearView.as_view(), name="memory-fact-clear"),
    path(f"{FACT_PATH}/history/", views.FactHistoryView.as_view(), name="memory-fact-history"),
    path(f"{FACT_PATH}/", views.FactView.as_view(), name="memory-fact"),
    path("memory/inject/", views.InjectView.as_view(), name="memory-inject"),
    path(
        "memory/conversations/",
        views.ConversationsView.as_view(),
        name="memory-conversations",
    ),
    path(
        "memory/conversations/<int:conversation_id>/retry/",
        views.ConversationRetryView.as_view(),
        name="memory-conversation-retry",
    ),
    path("memory/usage/", views.UsageView.as_view(), name="memory-usage"),
    path("memory/export/", views.ExportView.as_view(), name="memory-export"),
]
