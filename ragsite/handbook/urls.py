"""Addresses below /docs/."""

from django.urls import path

from ragsite.handbook import views

urlpatterns = [
    path("", views.docs_page, name="docs"),
    path("search/", views.docs_search, name="docs_search"),
    path("images/<str:name>", views.docs_image, name="docs_image"),
    path("<path:name>/", views.docs_page, name="docs_page"),
]
