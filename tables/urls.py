"""URLs of the pages of tables."""

from django.urls import path

from tables import views

urlpatterns = [
    path("documents/<slug:slug>/tables/", views.index, name="tables"),
    path("tables/rows/", views.result_rows, name="table_rows"),
    path("tables/<int:pk>/", views.detail, name="table"),
    path("tables/<int:pk>/column/", views.change_column, name="table_column"),
]
