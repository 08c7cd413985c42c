"""The search page and what belongs to it."""

from django.urls import path

from search import views

urlpatterns = [
    path("", views.search_page, name="search"),
    path("facets/", views.facet_choices, name="facet_choices"),
    path("export/", views.export_page, name="search_export"),
    path("similar/", views.similar_page, name="similar"),
    path("similar/document/<int:pk>/", views.similar_documents_panel, name="similar_document"),
    path("judge/", views.judge_hit, name="judge"),
    path("saved/", views.saved_searches, name="saved_searches"),
    path("saved/new/", views.create_saved_search, name="save_search"),
    path("saved/<int:pk>/rename/", views.rename_saved_search, name="saved_rename"),
    path("saved/<int:pk>/delete/", views.delete_saved_search, name="saved_delete"),
]
