"""The knowledge graph: nodes, edges, and the passages that both come from."""

from graph.models.extraction import Extraction
from graph.models.graph import (
    MAX_WEIGHT,
    Alias,
    Edge,
    Evidence,
    Mention,
    Node,
)
from graph.querysets import Origin

__all__ = [
    "MAX_WEIGHT",
    "Alias",
    "Edge",
    "Evidence",
    "Extraction",
    "Mention",
    "Node",
    "Origin",
]
