"""Addresses below `/v1/` and `/v2/`, as OpenAI's, Cohere's and Jina's clients ask for them."""

from django.urls import URLPattern, URLResolver, path, re_path

from rag.openai.base import NothingHere
from rag.openai.chat import CompletionsView
from rag.openai.embeddings import EmbeddingsView
from rag.openai.models import ModelsView, ModelView
from rag.openai.rerank import RerankView

urlpatterns: list[URLPattern | URLResolver] = [
    path("v1/models", ModelsView.as_view(), name="openai-models"),
    path("v1/models/<path:model>", ModelView.as_view(), name="openai-model"),
    path("v1/embeddings", EmbeddingsView.as_view(), name="openai-embeddings"),
    path("v1/chat/completions", CompletionsView.as_view(), name="openai-chat"),
    path("v1/rerank", RerankView.as_view(), name="rerank"),
    path("v2/rerank", RerankView.as_view(version="2", schema=None), name="rerank-2"),
    re_path(r"^v[12]/", NothingHere.as_view()),
]
