"""Addresses of stores, below those of their collections."""

from django.urls import path

from search.api.stores import views

STORE = "collections/<slug:slug>/store"

urlpatterns = [
    path(f"{STORE}/", views.StoreDetailView.as_view(), name="store"),
    path(f"{STORE}/items/", views.StoreItemsView.as_view(), name="store-items"),
    # A path, because an id may hold slashes.
    path(f"{STORE}/items/<path:item_id>/", views.StoreItemView.as_view(), name="store-item"),
    path(f"{STORE}/delete/", views.StoreDeleteView.as_view(), name="store-delete"),
    path(f"{STORE}/search/", views.StoreSearchView.as_view(), name="store-search"),
]
