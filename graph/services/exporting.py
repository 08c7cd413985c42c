"""The graph for other programs."""

from collections.abc import Iterator, Sequence
from typing import Any

from graph.reading.results import Subgraph
from graph.scopes import GraphScope


def export_graphml(
    *,
    scope: GraphScope,
    ids: Sequence[str] = (),
    hops: int = 1,
    cap: int = 1_000,
    rels: Sequence[str] = (),
    labels: Sequence[str] = (),
) -> Iterator[bytes]:
    """GraphML, part by part: of the whole graph of the scope, or of what is around `ids`.

    Raises NotFound and InvalidInput before the first part.
    """
    raise NotImplementedError


def export_cytoscape(subgraph: Subgraph) -> dict[str, Any]:
    """A subgraph as cytoscape.js reads it, with what was left out in `truncated`."""
    raise NotImplementedError
