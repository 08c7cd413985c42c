"""The pages of chat, pipelines and traces."""

from django.urls import path

from rag.views import chat, pipelines, traces

urlpatterns = [
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
    path("traces/", traces.index, name="traces"),
    path("traces/<int:pk>/", traces.detail, name="trace"),
    path("traces/<int:pk>/cancel/", traces.cancel, name="trace_cancel"),
]
