"""Addresses of the search API."""

from django.urls import include, path
from rest_framework.routers import SimpleRouter

from search.api.views import (
    EvaluationViewSet,
    ExportView,
    FacetsView,
    FiltersView,
    SavedSearchViewSet,
    SearchView,
    SimilarDocumentsView,
    SimilarPassagesView,
)

router = SimpleRouter(use_regex_path=False)
router.register("evaluations", EvaluationViewSet, basename="evaluation")
router.register("saved-searches", SavedSearchViewSet, basename="saved-search")

urlpatterns = [
    path("search/", SearchView.as_view(), name="search"),
    path("search/export/", ExportView.as_view(), name="search-export"),
    path("facets/", FacetsView.as_view(), name="facets"),
    path("filters/", FiltersView.as_view(), name="filters"),
    path("documents/<int:pk>/similar/", SimilarDocumentsView.as_view(), name="document-similar"),
    path("chunks/<int:pk>/similar/", SimilarPassagesView.as_view(), name="chunk-similar"),
    path("", include("search.api.stores")),
    path("", include(router.urls)),
]
