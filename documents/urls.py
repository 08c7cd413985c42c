"""URLs of the pages of collections, documents, uploads and runs."""

from django.urls import path

from documents.views import collections, documents, runs

urlpatterns = [
    path("documents/", collections.index, name="collections"),
    path("documents/<slug:slug>/", collections.detail, name="collection"),
    path("documents/<slug:slug>/change/", collections.change, name="collection_change"),
    path("documents/<slug:slug>/delete/", collections.delete, name="collection_delete"),
    path("documents/<slug:slug>/move/", collections.move, name="collection_move"),
    path("documents/<slug:slug>/upload/", collections.upload, name="upload"),
    path("documents/<slug:slug>/<int:pk>/", documents.detail, name="document"),
    path(
        "documents/<slug:slug>/<int:pk>/change/", documents.change_document, name="document_change"
    ),
    path("documents/<slug:slug>/<int:pk>/compare/", documents.compare, name="document_compare"),
    path("documents/<slug:slug>/<int:pk>/download/", documents.download, name="document_download"),
    path("documents/<slug:slug>/<int:pk>/text/", documents.download_text, name="document_text"),
    path(
        "documents/<slug:slug>/<int:pk>/pages/<int:number>/image/",
        documents.page_image,
        name="document_page_image",
    ),
    path("documents/<slug:slug>/<int:pk>/edits/", documents.edit_list, name="document_edits"),
    path(
        "documents/<slug:slug>/<int:pk>/edits/<int:edit_pk>/undo/",
        documents.undo_passage_edit,
        name="edit_undo",
    ),
    path(
        "documents/<slug:slug>/<int:pk>/edits/<int:edit_pk>/dismiss/",
        documents.dismiss_passage_edit,
        name="edit_dismiss",
    ),
    path(
        "documents/<slug:slug>/<int:pk>/passages/<int:chunk_pk>/",
        documents.edit_passage,
        name="passage_edit",
    ),
    path("documents/<slug:slug>/<int:pk>/delete/", documents.delete, name="document_delete"),
    path("runs/", runs.index, name="runs"),
    path("runs/<int:pk>/", runs.detail, name="run"),
    path("runs/<int:pk>/events/", runs.events, name="run_events"),
    path("runs/<int:pk>/cancel/", runs.cancel, name="run_cancel"),
    path("runs/<int:pk>/retry/", runs.retry, name="run_retry"),
]
