"""The graph as a way to passages."""

from graph.ranking import RankedGraph, Stop
from graph.retrieval.naming import Named, named_stops
from graph.retrieval.ranked import rank_passages
from graph.retrieval.related import Related, related_passages

__all__ = [
    "Named",
    "RankedGraph",
    "Related",
    "Stop",
    "named_stops",
    "rank_passages",
    "related_passages",
]
