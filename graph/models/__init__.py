"""The knowledge graph: nodes, edges, and the passages that both come from."""

from graph.models.edge import MAX_REL_CHARACTERS, MAX_WEIGHT, Edge, Evidence
from graph.models.extraction import Extraction
from graph.models.mention import Mention
from graph.models.node import MAX_FORM_CHARACTERS, MAX_KEY_CHARACTERS, Alias, Node
from graph.origin import Origin

__all__ = [
    "MAX_FORM_CHARACTERS",
    "MAX_KEY_CHARACTERS",
    "MAX_REL_CHARACTERS",
    "MAX_WEIGHT",
    "Alias",
    "Edge",
    "Evidence",
    "Extraction",
    "Mention",
    "Node",
    "Origin",
]
