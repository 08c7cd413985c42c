"""Curation of the graph: nodes, edges, names, the queue of documents."""

from graph.admin import edges, extractions, nodes

__all__ = ["edges", "extractions", "nodes"]
