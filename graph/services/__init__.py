"""What can be done with a workspace's graph. Every function that reads works on one scope."""

from graph.inputs import EdgeInput, NodeInput
from graph.reading.results import (
    Connected,
    GraphStatistics,
    Link,
    MentionFound,
    MentionPage,
    Neighbour,
    NeighbourPage,
    Path,
    PathFound,
    Reached,
    Subgraph,
    Traversal,
    Truncated,
)
from graph.reading.vertices import Ref, Vertex
from graph.services.exporting import export_cytoscape, export_graphml
from graph.services.merging import Merged, merge_nodes, merge_preview
from graph.services.reading import (
    find_nodes,
    get_node,
    graph_statistics,
    mentions_of,
    neighbors,
    shortest_path,
    subgraph,
    traverse,
)
from graph.services.writing import (
    EdgeChange,
    NodeChange,
    delete_edge,
    delete_node,
    delete_nodes,
    deletion_preview,
    upsert_edge,
    upsert_many,
    upsert_node,
)
from graph.storing.bulk import MissingNode, Upserted
from graph.storing.merging import Merge
from graph.storing.removing import Deletion

__all__ = [
    "Connected",
    "Deletion",
    "EdgeChange",
    "EdgeInput",
    "GraphStatistics",
    "Link",
    "MentionFound",
    "MentionPage",
    "Merge",
    "Merged",
    "MissingNode",
    "Neighbour",
    "NeighbourPage",
    "NodeChange",
    "NodeInput",
    "Path",
    "PathFound",
    "Reached",
    "Ref",
    "Subgraph",
    "Traversal",
    "Truncated",
    "Upserted",
    "Vertex",
    "delete_edge",
    "delete_node",
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
