"""Operations on a workspace's graph, within a scope: what is read, and what is written.

The reading functions are defined in `graph.reading`.
"""

from graph.inputs import EdgeInput, NodeInput
from graph.reading.export import export_cytoscape, export_graphml
from graph.reading.pages import list_edges, mentions_of, neighbors
from graph.reading.search import find_nodes
from graph.reading.statistics import graph_statistics, most_named
from graph.reading.traversal import shortest_path, subgraph, traverse
from graph.reading.vertices import get_node
from graph.services.edits import (
    Deletion,
    delete_edge,
    delete_nodes,
    deletion_preview,
    describe_node,
    names_of,
)
from graph.services.merge import merge_nodes, merge_preview
from graph.services.upsert import MissingNode, upsert_edge, upsert_many, upsert_node

__all__ = [
    "Deletion",
    "EdgeInput",
    "MissingNode",
    "NodeInput",
    "delete_edge",
    "delete_nodes",
    "deletion_preview",
    "describe_node",
    "export_cytoscape",
    "export_graphml",
    "find_nodes",
    "get_node",
    "graph_statistics",
    "list_edges",
    "mentions_of",
    "merge_nodes",
    "merge_preview",
    "most_named",
    "names_of",
    "neighbors",
    "shortest_path",
    "subgraph",
    "traverse",
    "upsert_edge",
    "upsert_many",
    "upsert_node",
]
