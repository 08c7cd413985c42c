"""Pages of the graph: where to start, and what is around a node."""
