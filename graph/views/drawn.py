"""The part of the graph that an address asks for, with the filters that fit it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import NotFound
from graph import services
from graph.forms import GraphState
from graph.reading.results import Link, Subgraph
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope
from graph.views.shown import Shown, shown
from graph.views.signs import relation_words

#: Values of a filter that are offered, the most frequent first.
OFFERED = 30
#: Among documents passages are left out, which take room in what the graph gives: so many times as
#: much is asked for.
WIDER = 2
#: The links of so many nodes are counted for what is left out.
COUNTED = 5


@dataclass(frozen=True, slots=True)
class Drawn:
    """Nodes, the best connected first, and the links between them. A node's degree is that here.

    `is_cut` says that more is linked than is drawn. `missing` are ids that lead to nothing.
    """

    nodes: tuple[Shown, ...]
    links: tuple[Link, ...]
    is_cut: bool = False
    missing: tuple[str, ...] = ()

    @property
    def elements(self) -> dict[str, list[dict[str, Any]]]:
        """What cytoscape draws."""
        return {
            "nodes": [{"data": _node(node)} for node in self.nodes],
            "edges": [{"data": _edge(link)} for link in self.links],
        }


@dataclass(frozen=True, slots=True)
class Choice:
    """A value to filter by: `url` chooses it, or takes it back where it is `selected`."""

    label: str
    url: str
    count: int
    selected: bool
    tone: int = 0
    kind: str = "node"


@dataclass(frozen=True, slots=True)
class Facet:
    """The values of one filter."""

    name: str
    title: str
    choices: tuple[Choice, ...]


def drawn(scope: GraphScope, state: GraphState) -> Drawn:
    """What `state` asks for. The filter counts on the way, too: no hop leads over what it leaves
    out."""
    return _drawn(_subgraph(scope, state, rels=state.rels, labels=state.labels), state)


def left_out(scope: GraphScope, state: GraphState, found: Drawn) -> int | None:
    """How many links of the nodes that are expanded are not drawn; None where it takes too long to
    count them."""
    if state.hops > 1 or state.labels or len(state.starts) > COUNTED:
        return None
    starts = [id for id in state.starts if id not in found.missing]
    pages = (
        services.neighbors(scope=scope, id=id, rel=state.rels, grain=state.grain, limit=1)
        for id in starts
    )
    drawn_ends = sum((link.source in starts) + (link.target in starts) for link in found.links)
    return max(sum(page.total for page in pages) - drawn_ends, 0) or None


def facets(scope: GraphScope, state: GraphState, found: Drawn) -> tuple[Facet, ...]:
    """The kinds and relations that there are without the filter, with their numbers."""
    whole = _drawn(_subgraph(scope, state), state) if state.is_filtered else found
    signs = {node.filter_label: node for node in whole.nodes}
    labels = Counter(node.filter_label for node in whole.nodes)
    rels = Counter(link.rel for link in whole.links)
    kinds = (
        Choice(
            label=signs[label].label if label in signs else label,
            url=state.toggled("labels", label),
            count=count,
            selected=label in state.labels,
            tone=signs[label].tone if label in signs else 0,
            kind=signs[label].kind if label in signs else "node",
        )
        for label, count in _offered(labels, state.labels)
    )
    relations = (
        Choice(relation_words(rel), state.toggled("rels", rel), count, rel in state.rels)
        for rel, count in _offered(rels, state.rels)
    )
    both = (Facet("label", "Kinds", tuple(kinds)), Facet("rel", "Links", tuple(relations)))
    return tuple(facet for facet in both if facet.choices)


def _offered(counts: Counter[str], chosen: Sequence[str]) -> Iterable[tuple[str, int]]:
    """The most frequent values, and in any case the chosen ones, so that they can be taken back."""
    offered = dict(sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))[:OFFERED])
    return (offered | {value: counts[value] for value in chosen}).items()


def _subgraph(
    scope: GraphScope, state: GraphState, *, rels: Sequence[str] = (), labels: Sequence[str] = ()
) -> Subgraph:
    try:
        return services.subgraph(
            scope=scope,
            ids=state.starts,
            hops=state.hops,
            cap=state.size if state.grain == "chunk" else state.size * WIDER,
            rels=rels,
            labels=labels,
            grain=state.grain,
        )
    except NotFound:
        return Subgraph(vertices=(), links=(), degrees={}, missing=state.starts)


def _drawn(found: Subgraph, state: GraphState) -> Drawn:
    wanted = [vertex for vertex in found.vertices if _is_drawn(vertex, state)]
    vertices = wanted[: state.size]
    there = {vertex.id for vertex in vertices}
    links = [link for link in found.links if link.source in there and link.target in there]
    seen = Counter(end for link in links for end in {link.source, link.target})
    nodes = [shown(vertex, state, degree=seen[vertex.id]) for vertex in vertices]
    nodes.sort(key=lambda node: (-seen[node.id], node.name.casefold(), node.id))
    is_cut = bool(found.truncated) or len(wanted) > len(vertices)
    return Drawn(tuple(nodes), tuple(links), is_cut, found.missing)


def _is_drawn(vertex: Vertex, state: GraphState) -> bool:
    """Among documents only those passages that were asked for."""
    if vertex.id in state.hidden:
        return False
    return state.grain == "chunk" or vertex.kind != "chunk" or vertex.id in state.starts


def _node(node: Shown) -> dict[str, Any]:
    return {
        "id": node.id,
        "name": node.name,
        "kind": node.kind,
        "labels": list(node.labels),
        "degree": node.degree,
        "tone": node.tone,
        "root": node.is_root,
    }


def _edge(link: Link) -> dict[str, Any]:
    return {
        "id": f"{link.source}\n{link.rel}\n{link.target}",
        "source": link.source,
        "target": link.target,
        "rel": link.rel,
        "says": relation_words(link.rel),
        "weight": link.weight,
    }
