"""The pages of the graph."""

from django.urls import path

from graph.views import beside, explorer, exports, finder

urlpatterns = [
    path("graph/", explorer.index, name="graph"),
    path("graph/elements/", explorer.elements, name="graph_elements"),
    path("graph/about/", explorer.about, name="graph_about"),
    path("graph/document/<int:pk>/", beside.beside_document, name="graph_document"),
    path("graph/find/", finder.options, name="graph_find"),
    path("graph/export/", exports.download, name="graph_export"),
]
