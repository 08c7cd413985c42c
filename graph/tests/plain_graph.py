"""A graph of plain dictionaries: what the tables must agree with."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from graph.inputs import EdgeInput, NodeInput
from graph.models import Edge, Node
from graph.scopes import GraphScope

Ends = tuple[str, str, str]


@dataclass
class PlainGraph:
    """Nodes as (name, labels, props) and edges as (weight, props)."""

    nodes: dict[str, tuple[str, list[str], dict[str, Any]]] = field(default_factory=dict)
    edges: dict[Ends, tuple[float, dict[str, Any]]] = field(default_factory=dict)

    def upsert(self, nodes: Iterable[NodeInput], edges: Iterable[EdgeInput]) -> None:
        """The last item of a node or edge counts; ends are made."""
        for item in {item.id: item for item in nodes}.values():
            name, labels, props = self.nodes.get(item.id, ("", [], {}))
            self.nodes[item.id] = (
                name if item.name is None else item.name,
                labels if item.labels is None else list(item.labels),
                props | dict(item.props or {}),
            )
        for edge in {(item.source, item.rel, item.target): item for item in edges}.values():
            ends = (edge.source, edge.rel, edge.target)
            weight, props = self.edges.get(ends, (1.0, {}))
            self.edges[ends] = (
                weight if edge.weight is None else edge.weight,
                props | dict(edge.props or {}),
            )
            for end in (edge.source, edge.target):
                self.nodes.setdefault(end, ("", [], {}))

    def merge(self, keep: str, others: set[str]) -> None:
        """Edges between the merged go, equal ones become one."""
        merged = {keep, *others}
        for other in others:
            del self.nodes[other]
        before, self.edges = self.edges, {}
        for (source, rel, target), (weight, _) in before.items():
            ends = (keep if source in merged else source, rel, keep if target in merged else target)
            if source != target and ends[0] == ends[2] == keep:
                continue
            known = self.edges.get(ends, (0.0, {}))
            self.edges[ends] = (max(known[0], weight), {})


def stored(scope: GraphScope) -> PlainGraph:
    """What the tables hold."""
    nodes = Node.objects.filter(workspace=scope.workspace_id)
    edges = Edge.objects.filter(workspace=scope.workspace_id).select_related("source", "target")
    rows = [((edge.source.key, edge.rel, edge.target.key), edge) for edge in edges]
    assert len({ends for ends, _ in rows}) == len(rows)
    return PlainGraph(
        {node.key: (node.name, node.labels, node.props) for node in nodes},
        {ends: (edge.weight, edge.props) for ends, edge in rows},
    )
