"""Addresses of the search API."""

from django.urls import include, path

from search.api.views import SearchView

urlpatterns = [
    path("search/", SearchView.as_view(), name="search"),
    path("", include("search.api.stores.urls")),
]
