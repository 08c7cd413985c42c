"""Operations on a workspace's graph. Reading functions take a scope."""

from graph.inputs import EdgeInput, NodeInput
from graph.services.edits import (
    delete_edge,
    delete_nodes,
    deletion_preview,
    merge_nodes,
    merge_preview,
    upsert_edge,
    upsert_many,
    upsert_node,
)
from graph.services.queries import (
    export_cytoscape,
    export_graphml,
    find_nodes,
    get_node,
    graph_statistics,
    mentions_of,
    neighbors,
    shortest_path,
    subgraph,
    traverse,
)
from graph.storing.removal import Deletion
from graph.storing.upsert import MissingNode

__all__ = [
    "Deletion",
    "EdgeInput",
    "MissingNode",
    "NodeInput",
    "delete_edge",
    "delete_nodes",
    "deletion_preview",
    "export_cytoscape",
    "export_graphml",
    "find_nodes",
    "get_node",
    "graph_statistics",
    "mentions_of",
    "merge_nodes",
    "merge_preview",
    "neighbors",
    "shortest_path",
    "subgraph",
    "traverse",
    "upsert_edge",
    "upsert_many",
    "upsert_node",
]
