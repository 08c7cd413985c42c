"""The part of the graph that an address asks for, with the filters that fit it."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from graph import services
from graph.forms import GraphState
from graph.reading.results import Link, Subgraph
from graph.scopes import GraphScope
from graph.views.shown import Shown, shown
from graph.views.signs import relation_words

#: Values of a filter that are offered, the most frequent first.
OFFERED = 30


@dataclass(frozen=True, slots=True)
class Drawn:
    """Nodes, the best connected first, and the links between them.

    `is_cut` says that more is linked; `more` is how many links that are, None where nobody counted.
    `missing` are ids that lead to nothing.
    """

    nodes: tuple[Shown, ...]
    links: tuple[Link, ...]
    is_cut: bool = False
    more: int | None = None
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
    return services.subgraph(
        scope=scope,
        ids=state.starts,
        hops=state.hops,
        cap=state.size,
        rels=rels,
        labels=labels,
        grain=state.grain,
    )


def _drawn(found: Subgraph, state: GraphState) -> Drawn:
    hidden = set(state.hidden)
    nodes = [
        shown(vertex, state, degree=found.degrees.get(vertex.id, 0))
        for vertex in found.vertices
        if vertex.id not in hidden
    ]
    there = {node.id for node in nodes}
    links = [link for link in found.links if link.source in there and link.target in there]
    nodes.sort(key=lambda node: (-(node.degree or 0), node.name.casefold(), node.id))
    return Drawn(
        nodes=tuple(nodes),
        links=tuple(links),
        is_cut=bool(found.truncated),
        more=_more(found, state) if found.truncated else 0,
        missing=found.missing,
    )


def _more(found: Subgraph, state: GraphState) -> int | None:
    """Links of the expanded nodes that are left out; a filter or a second hop hides how many."""
    if state.is_filtered or state.hops > 1:
        return None
    starts = set(state.starts)
    there = sum((link.source in starts) + (link.target in starts) for link in found.links)
    all_of_them = sum(found.degrees.get(id, 0) for id in starts)
    return max(all_of_them - there, 0) or None


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
