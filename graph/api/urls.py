"""Addresses of the graph API. Ids hold anything, so they never stand in a path."""

from django.urls import path

from graph.api import bulk, views

urlpatterns = [
    path("graph/nodes/", views.NodesView.as_view(), name="graph-nodes"),
    path("graph/nodes/delete/", views.NodesDeleteView.as_view(), name="graph-nodes-delete"),
    path("graph/edges/", views.EdgesView.as_view(), name="graph-edges"),
    path("graph/neighbors/", views.NeighborsView.as_view(), name="graph-neighbors"),
    path("graph/mentions/", views.MentionsView.as_view(), name="graph-mentions"),
    path("graph/traverse/", views.TraverseView.as_view(), name="graph-traverse"),
    path("graph/paths/", views.PathsView.as_view(), name="graph-paths"),
    path("graph/subgraph/", views.SubgraphView.as_view(), name="graph-subgraph"),
    path("graph/bulk/", bulk.BulkView.as_view(), name="graph-bulk"),
    path("graph/merge/", bulk.MergeView.as_view(), name="graph-merge"),
    path("graph/stats/", bulk.StatsView.as_view(), name="graph-stats"),
    path("graph/export/", bulk.ExportView.as_view(), name="graph-export"),
    path("graph/extractions/", bulk.ExtractionsView.as_view(), name="graph-extractions"),
]
