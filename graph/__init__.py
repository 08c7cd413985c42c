"""Nodes and edges of the knowledge graph (built by a later issue)."""
