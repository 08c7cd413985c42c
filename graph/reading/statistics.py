"""How large a graph is, what it is made of, and what is best connected."""

from math import ceil

from graph.reading.results import Connected, GraphStatistics
from graph.reading.statements import named_rows, piece
from graph.reading.vertices import Ref, load
from graph.scopes import Sight

#: Of more rows than these only every so manyth is looked at.
MOST_NODES = 100_000
MOST_EDGES = 50_000
#: So many labels and relations are told, the most frequent, and so many nodes, the best connected.
NAMES, BEST = 50, 10

_Counts = dict[str, dict[str, int]]


def statistics(seen: Sight) -> GraphStatistics:
    """What `seen` lets see of it. Of a large graph the numbers are estimates."""
    (totals,) = named_rows(
        piece("statistics_totals").format(document=seen.listed("document")), seen.parameters
    )
    every_node = max(1, ceil(totals["nodes"] / MOST_NODES))
    every_edge = max(1, ceil(totals["edges"] / MOST_EDGES))
    nodes = _counts(
        seen, piece("statistics_nodes").format(node=seen.node("node")), one_in=every_node
    )
    edges = _counts(
        seen,
        piece("statistics_edges").format(
            edge=seen.edge("edge"), source=seen.node("source"), target=seen.node("target")
        ),
        one_in=every_edge,
    )
    return GraphStatistics(
        nodes=nodes[""][""],
        edges=edges[""][""],
        documents=totals["documents"],
        mentions=totals["mentions"],
        origins=nodes["origin"],
        labels=nodes["label"],
        rels=edges["rel"],
        best_connected=_connected(seen, edges["node"]),
        sampled=every_node > 1 or every_edge > 1,
    )


def _counts(seen: Sight, statement: str, *, one_in: int) -> _Counts:
    counts: _Counts = {"": {}, "origin": {}, "label": {}, "rel": {}, "node": {}}
    given = {"one_in": one_in, "names": NAMES, "best": BEST}
    for row in named_rows(statement, seen.parameters | given):
        counts[row["what"]][row["name"]] = row["number"] * one_in
    return counts


def _connected(seen: Sight, numbers: dict[str, int]) -> tuple[Connected, ...]:
    refs = {Ref("node", int(pk)): number for pk, number in numbers.items()}
    vertices = load(seen, refs)
    return tuple(
        Connected(vertices[ref], number) for ref, number in refs.items() if ref in vertices
    )
