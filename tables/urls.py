"""URLs of the pages of tables."""

from django.urls import path

from tables import views

urlpatterns = [
    path("documents/<slug:slug>/tables/", views.index, name="tables"),
    path("documents/<slug:slug>/tables/matches/", views.look_for_matches, name="table_matches"),
    path("tables/rows/", views.result_rows, name="table_rows"),
    path("tables/<int:pk>/", views.detail, name="table"),
    path("tables/<int:pk>/column/", views.change_column, name="table_column"),
    path("tables/<int:pk>/group/", views.group, name="table_group"),
    path("tables/<int:pk>/group/change/", views.change_group, name="table_group_change"),
]
