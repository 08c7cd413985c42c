"""The search page."""

from django.urls import path

from search import views

urlpatterns = [path("", views.search_page, name="search")]
