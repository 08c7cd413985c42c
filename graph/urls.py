"""The pages of the graph."""

from django.urls import path

from graph import views

urlpatterns = [
    path("graph/", views.index, name="graph"),
    path("graph/elements/", views.elements, name="graph_elements"),
    path("graph/about/", views.about, name="graph_about"),
    path("graph/document/<int:pk>/", views.document_panel, name="graph_document"),
    path("graph/find/", views.options, name="graph_find"),
    path("graph/export/", views.export_file, name="graph_export"),
]
