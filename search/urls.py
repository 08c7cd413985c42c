"""The search page and what belongs to it."""

from django.urls import path

from search.views import exports, golden, results, saved, similar, values

urlpatterns = [
    path("", results.search_page, name="search"),
    path("facets/", values.facet_choices, name="facet_choices"),
    path("export/", exports.export, name="search_export"),
    path("similar/", similar.similar_page, name="similar"),
    path("similar/document/<int:pk>/", similar.beside_document, name="similar_document"),
    path("judge/", golden.judge_hit, name="judge"),
    path("saved/", saved.index, name="saved_searches"),
    path("saved/new/", saved.save, name="save_search"),
    path("saved/<int:pk>/rename/", saved.rename, name="saved_rename"),
    path("saved/<int:pk>/delete/", saved.delete, name="saved_delete"),
]
