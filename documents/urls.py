"""Collections, documents, uploads and runs."""

from django.urls import path

from documents.views import collections, documents, runs, uploads

urlpatterns = [
    path("documents/", collections.index, name="collections"),
    path("documents/<slug:slug>/", collections.detail, name="collection"),
    path("documents/<slug:slug>/change/", collections.change, name="collection_change"),
    path("documents/<slug:slug>/delete/", collections.delete, name="collection_delete"),
    path("documents/<slug:slug>/upload/", uploads.upload, name="upload"),
    path("documents/<slug:slug>/<int:pk>/", documents.detail, name="document"),
    path("documents/<slug:slug>/<int:pk>/delete/", documents.delete, name="document_delete"),
    path("runs/", runs.index, name="runs"),
    path("runs/<int:pk>/", runs.detail, name="run"),
    path("runs/<int:pk>/events/", runs.events, name="run_events"),
    path("runs/<int:pk>/cancel/", runs.cancel, name="run_cancel"),
    path("runs/<int:pk>/retry/", runs.retry, name="run_retry"),
]
