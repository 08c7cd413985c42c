"""Addresses of the memory API."""

from django.urls import path

from memory.api import contexts, conversations, facts, injecting, whole

# A path, because a key that somebody else thought of may hold slashes.
FACT = "memory/facts/<path:key>"

urlpatterns = [
    path("memory/", whole.MemoryWholeView.as_view(), name="memory"),
    path("memory/search/", contexts.SearchView.as_view(), name="memory-search"),
    path("memory/contexts/", contexts.ContextsView.as_view(), name="memory-contexts"),
    path("memory/contexts/clear/", contexts.ContextsClearView.as_view(), name="memory-clear"),
    path(
        "memory/contexts/<int:context_id>/", contexts.ContextView.as_view(), name="memory-context"
    ),
    path("memory/facts/", facts.FactsView.as_view(), name="memory-facts"),
    path(f"{FACT}/clear/", facts.FactClearView.as_view(), name="memory-fact-clear"),
    path(f"{FACT}/history/", facts.FactHistoryView.as_view(), name="memory-fact-history"),
    path(f"{FACT}/", facts.FactView.as_view(), name="memory-fact"),
    path("memory/inject/", injecting.InjectView.as_view(), name="memory-inject"),
    path(
        "memory/conversations/",
        conversations.ConversationsView.as_view(),
        name="memory-conversations",
    ),
    path(
        "memory/conversations/<int:conversation_id>/retry/",
        conversations.ConversationRetryView.as_view(),
        name="memory-conversation-retry",
    ),
    path("memory/usage/", whole.UsageView.as_view(), name="memory-usage"),
    path("memory/export/", whole.ExportView.as_view(), name="memory-export"),
]
