"""Addresses below /docs/."""

from django.urls import path

from ragsite.handbook import views

urlpatterns = [
    path("", views.page, name="docs"),
    path("search/", views.results, name="docs_search"),
    path("images/<str:name>", views.image, name="docs_image"),
    path("<path:name>/", views.page, name="docs_page"),
]
