"""The pages of the graph."""

from django.urls import path

from graph.views import editor, explorer

# The ids of nodes, which may contain any character, are in the query string.
urlpatterns = [
    path("graph/", explorer.index, name="graph"),
    path("graph/elements/", explorer.elements, name="graph_elements"),
    path("graph/about/", explorer.about, name="graph_about"),
    path("graph/document/<int:pk>/", explorer.document_panel, name="graph_document"),
    path("graph/find/", explorer.options, name="graph_find"),
    path("graph/export/", explorer.export_file, name="graph_export"),
    path("graph/nodes/new/", editor.add_node, name="graph_node_new"),
    path("graph/node/", editor.change_node, name="graph_node"),
    path("graph/node/delete/", editor.delete_node, name="graph_node_delete"),
    path("graph/merge/", editor.merge, name="graph_merge"),
    path("graph/edges/new/", editor.add_edge, name="graph_edge_new"),
    path("graph/edge/", editor.change_edge, name="graph_edge"),
    path("graph/edge/delete/", editor.delete_edge, name="graph_edge_delete"),
]
