"""Addresses of the graph API. Ids hold anything, so they never stand in a path."""

from django.urls import path

from graph.api import bulk, edges, nodes, walks, whole

urlpatterns = [
    path("graph/nodes/", nodes.NodesView.as_view(), name="graph-nodes"),
    path("graph/nodes/delete/", nodes.NodesDeleteView.as_view(), name="graph-nodes-delete"),
    path("graph/edges/", edges.EdgesView.as_view(), name="graph-edges"),
    path("graph/neighbors/", walks.NeighborsView.as_view(), name="graph-neighbors"),
    path("graph/mentions/", walks.MentionsView.as_view(), name="graph-mentions"),
    path("graph/traverse/", walks.TraverseView.as_view(), name="graph-traverse"),
    path("graph/paths/", walks.PathsView.as_view(), name="graph-paths"),
    path("graph/subgraph/", walks.SubgraphView.as_view(), name="graph-subgraph"),
    path("graph/bulk/", bulk.BulkView.as_view(), name="graph-bulk"),
    path("graph/merge/", whole.MergeView.as_view(), name="graph-merge"),
    path("graph/stats/", whole.StatsView.as_view(), name="graph-stats"),
    path("graph/export/", whole.ExportView.as_view(), name="graph-export"),
    path("graph/extractions/", whole.ExtractionsView.as_view(), name="graph-extractions"),
]
