"""Pages of chat, pipelines and traces, and endpoints that other software expects at the root:
`/v1/` and `/v2/` for clients of OpenAI, Anthropic, Cohere and Jina, and `/mcp`."""

from django.urls import URLPattern, URLResolver, path, re_path

from rag.anthropic.messages import CountTokensView, MessagesView
from rag.mcp.views import McpView
from rag.openai.chat import CompletionsView
from rag.openai.embeddings import EmbeddingsView
from rag.openai.models import ModelsView, ModelView
from rag.openai.protocol import UnknownEndpoint
from rag.openai.rerank import RerankView
from rag.views import chat, databases, pipelines, summaries, traces

urlpatterns: list[URLPattern | URLResolver] = [
    path("chat/", chat.index, name="chat"),
    path("chat/connect/", chat.connect, name="chat_connect"),
    path("chat/<int:pk>/", chat.detail, name="conversation"),
    path("chat/<int:pk>/rename/", chat.rename, name="conversation_rename"),
    path("chat/<int:pk>/delete/", chat.delete, name="conversation_delete"),
    path("chat/<int:pk>/turns/<int:message>/", chat.turn, name="conversation_turn"),
    path("pipelines/", pipelines.index, name="pipelines"),
    path("new-pipeline/", pipelines.new, name="pipeline_new"),
    path("pipelines/<slug:slug>/", pipelines.detail, name="pipeline"),
    path("pipelines/<slug:slug>/edit/", pipelines.edit, name="pipeline_edit"),
    path("pipelines/<slug:slug>/delete/", pipelines.delete, name="pipeline_delete"),
    path("databases/", databases.index, name="databases"),
    path("databases/new/", databases.new, name="database_new"),
    path("databases/<int:pk>/", databases.detail, name="database"),
    path("databases/<int:pk>/change/", databases.change, name="database_change"),
    path("databases/<int:pk>/remove/", databases.remove, name="database_remove"),
    path("traces/", traces.index, name="traces"),
    path("traces/<int:pk>/", traces.detail, name="trace"),
    path("traces/<int:pk>/cancel/", traces.cancel, name="trace_cancel"),
    path("summary/", summaries.set_summary, name="summary"),
    path("summary/document/<int:pk>/", summaries.document_summary, name="document_summary"),
    path("v1/models", ModelsView.as_view(), name="openai-models"),
    path("v1/models/<path:model>", ModelView.as_view(), name="openai-model"),
    path("v1/embeddings", EmbeddingsView.as_view(), name="openai-embeddings"),
    path("v1/chat/completions", CompletionsView.as_view(), name="openai-chat"),
    path("v1/messages", MessagesView.as_view(), name="anthropic-messages"),
    path("v1/messages/count_tokens", CountTokensView.as_view(), name="anthropic-count-tokens"),
    path("v1/rerank", RerankView.as_view(), name="rerank"),
    path("v2/rerank", RerankView.as_view(version="2", schema=None), name="rerank-2"),
    re_path(r"^v[12]/", UnknownEndpoint.as_view(schema=None)),
    re_path(r"^mcp/?$", McpView.as_view(), name="mcp"),
]
