"""How large a graph is, what it is made of, and what is best connected."""

from collections import defaultdict
from math import ceil

from common.replicas import reads_from_replica
from graph.reading.results import Connected, GraphStatistics
from graph.reading.vertices import Ref, fetch_dicts, load_sql, load_vertices
from graph.scopes import AccessFilter, GraphScope

#: Larger tables are sampled.
MAX_NODES = 100_000
MAX_EDGES = 50_000
#: Number of most frequent labels and relations, and of best connected nodes.
MAX_NAMES, MAX_BEST_CONNECTED = 50, 10


@reads_from_replica
def graph_statistics(*, scope: GraphScope) -> GraphStatistics:
    """Statistics of the visible graph; estimates for a large one."""
    seen = AccessFilter(scope)
    (totals,) = fetch_dicts(
        load_sql("statistics_totals").format(document=seen.listed("document")), seen.parameters
    )
    every_node = max(1, ceil(totals["nodes"] / MAX_NODES))
    every_edge = max(1, ceil(totals["edges"] / MAX_EDGES))
    nodes = _counts(
        seen, load_sql("statistics_nodes").format(node=seen.node("node")), one_in=every_node
    )
    edges = _counts(
        seen,
        load_sql("statistics_edges").format(
            edge=seen.edge("edge"), source=seen.node("source"), target=seen.node("target")
        ),
        one_in=every_edge,
    )
    degrees = {Ref("node", int(pk)): number for pk, number in edges["node"].items()}
    vertices = load_vertices(seen, degrees)
    return GraphStatistics(
        nodes=nodes[""][""],
        edges=edges[""][""],
        documents=totals["documents"],
        mentions=totals["mentions"],
        origins=nodes["origin"],
        labels=nodes["label"],
        rels=edges["rel"],
        best_connected=tuple(
            Connected(vertices[ref], degree) for ref, degree in degrees.items() if ref in vertices
        ),
        sampled=every_node > 1 or every_edge > 1,
    )


def _counts(seen: AccessFilter, statement: str, *, one_in: int) -> dict[str, dict[str, int]]:
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    given = {"one_in": one_in, "names": MAX_NAMES, "best": MAX_BEST_CONNECTED}
    for row in fetch_dicts(statement, seen.parameters | given):
        counts[row["what"]][row["name"]] = row["number"] * one_in
    return counts
