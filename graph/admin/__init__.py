"""Curation of the graph: nodes, edges, names, the queue of documents."""

from graph.admin import aliases, edges, extractions, nodes

__all__ = ["aliases", "edges", "extractions", "nodes"]
