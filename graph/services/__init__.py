"""What can be done with a workspace's graph. Every function that reads works on one scope."""

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

__all__ = [
    "Connected",
    "GraphStatistics",
    "Link",
    "MentionFound",
    "MentionPage",
    "Neighbour",
    "NeighbourPage",
    "Path",
    "PathFound",
    "Reached",
    "Ref",
    "Subgraph",
    "Traversal",
    "Truncated",
    "Vertex",
    "export_cytoscape",
    "export_graphml",
    "find_nodes",
    "get_node",
    "graph_statistics",
    "mentions_of",
    "neighbors",
    "shortest_path",
    "subgraph",
    "traverse",
]
