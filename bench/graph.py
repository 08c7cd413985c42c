"""The graph at a million edges: written in bulk, and what hangs on that, in one run.

    python -m bench.graph [bulk rows around] [--nodes 200000] [--edges 1000000]

Makes nodes and edges with power-law degrees, always the same ones, by the bulk upsert: that is the
first measurement. Then each named part runs on that graph; all of them unless some are named.
Removes what it made.
"""

import argparse
import gc
import os
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from time import perf_counter

os.environ["DJANGO_SETTINGS_MODULE"] = "ragsite.settings"
os.environ["EMBEDDER_BACKEND"] = "inference.backends.hashing.HashingEmbedder"
for variable in ("EMBEDDER_OPTIONS", "EMBEDDERS"):
    os.environ.pop(variable, None)

from ragsite import bootstrap

bootstrap.prepare(["manage.py", "graph"])

import numpy as np
from django.db import connection
from rich.console import Console

from accounts.services import get_or_create_workspace
from graph.models import Edge, Node
from graph.scopes import GraphScope
from graph.services import EdgeInput, NodeInput, subgraph, traverse, upsert_edge, upsert_many

NAME = "benchmark-graph"
NODES, EDGES, ROWS = 200_000, 1_000_000, 1_000
MUST_WRITE = 30_000
LOOKS, MUST_LOOK_MS = 200, 50
RELATIONS = ("KNOWS", "WORKS_AT", "CITES", "PART_OF", "LOCATED_IN", "WROTE", "LIKES", "OWNS")
#: The higher, the more hangs on few: the first node of each 200,000 is an end of 1 edge in 60.
SOURCE_SKEW, TARGET_SKEW = 2, 3


@dataclass(frozen=True, slots=True)
class Made:
    """The graph that all parts work on: edge `n` is source[n] -rel[n]-> target[n], by number."""

    scope: GraphScope
    nodes: int
    source: np.ndarray
    rel: np.ndarray
    target: np.ndarray

    @property
    def edges(self) -> int:
        return len(self.source)

    def node_inputs(self) -> Iterator[NodeInput]:
        """All nodes, with a name that texts find them by."""
        for number in range(self.nodes):
            yield NodeInput(node_id(number), f"Thing {number}", ["thing"], {"number": number})

    def edge_inputs(self, *, year: int, first: int | None = None) -> Iterator[EdgeInput]:
        """All edges, or the first ones, with a small property."""
        ends = (column[:first].tolist() for column in (self.source, self.rel, self.target))
        for source, rel, target in zip(*ends, strict=True):
            yield EdgeInput(node_id(source), RELATIONS[rel], node_id(target), props={"year": year})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=[])
    parser.add_argument("--nodes", type=int, default=NODES)
    parser.add_argument("--edges", type=int, default=EDGES)
    options = parser.parse_args()
    workspace = get_or_create_workspace(slug=NAME)
    console = Console()
    try:
        remove(workspace.pk)
        made = draw(GraphScope(workspace.pk), options.nodes, options.edges)
        reached = build(made, console)
        freeze()
        for part in options.parts or PARTS:
            reached &= PARTS[part](made, console)
    finally:
        remove(workspace.pk)
        workspace.delete()
    if not reached:
        sys.exit(1)


def node_id(number: int) -> str:
    return f"ent:thing:{number}"


def draw(scope: GraphScope, nodes: int, edges: int) -> Made:
    """Distinct edges whose ends have power-law degrees, the hubs anywhere among the numbers."""
    chance = np.random.default_rng(7)
    shuffled = chance.permutation(nodes)
    codes = np.empty(0, dtype=np.int64)
    while len(codes) < edges:
        source, target = (
            shuffled[(nodes * chance.random(edges) ** skew).astype(np.int64)]
            for skew in (SOURCE_SKEW, TARGET_SKEW)
        )
        rel = chance.integers(0, len(RELATIONS), edges)
        codes = np.unique(np.append(codes, (source * nodes + target) * len(RELATIONS) + rel))
    codes = chance.permutation(codes)[:edges]
    ends, rel = np.divmod(codes, len(RELATIONS))
    source, target = np.divmod(ends, nodes)
    return Made(scope, nodes, source, rel, target)


def build(made: Made, console: Console) -> bool:
    """Write it into the empty workspace; whether fast enough."""
    nodes = timed(lambda: upsert_many(scope=made.scope, nodes=made.node_inputs()))
    console.print(
        f"{made.nodes:,} nodes with names: {nodes:.1f} s, {made.nodes / nodes:,.0f} a second"
    )
    edges = timed(lambda: upsert_many(scope=made.scope, edges=made.edge_inputs(year=2025)))
    rate = made.edges / edges
    console.print(
        f"{made.edges:,} edges: {edges:.1f} s, {rate:,.0f} a second;"
        f" must be at least {MUST_WRITE:,} a second"
    )
    analyse()
    return rate >= MUST_WRITE


def bulk(made: Made, console: Console) -> bool:
    """The same edges again: unchanged, and with other properties."""
    rows = Edge.objects.filter(workspace=made.scope.workspace_id).count()
    for what, year in (("the same", 2025), ("changed", 2026)):
        written = upsert_many
        started = perf_counter()
        result = written(scope=made.scope, edges=made.edge_inputs(year=year))
        seconds = perf_counter() - started
        console.print(
            f"again, {what}: {seconds:.1f} s, {made.edges / seconds:,.0f} a second,"
            f" {result.edges_created:,} added, {result.edges_updated:,} changed"
        )
    after = Edge.objects.filter(workspace=made.scope.workspace_id).count()
    analyse()
    return after == rows == made.edges


def rows(made: Made, console: Console) -> bool:
    """One edge a call, beside the same number in one."""
    several = list(made.edge_inputs(year=2027, first=ROWS))
    one_by_one = timed(
        lambda: [
            upsert_edge(
                scope=made.scope,
                source=edge.source,
                rel=edge.rel,
                target=edge.target,
                props=edge.props,
            )
            for edge in several
        ]
    )
    again = list(made.edge_inputs(year=2028, first=ROWS))
    together = timed(lambda: upsert_many(scope=made.scope, edges=again))
    console.print(
        f"{ROWS:,} edges changed, each in a call: {1000 * one_by_one / ROWS:.1f} ms an edge;"
        f" in one call: {1000 * together / ROWS:.2f} ms"
    )
    return True


def around(made: Made, console: Console) -> bool:
    """What is two steps around nodes picked at random by their edges, so hubs among them: listed,
    and drawn with all edges among it."""
    chance = np.random.default_rng(11)
    ends = chance.choice(np.concatenate([made.source, made.target]), LOOKS)
    ids = [node_id(int(number)) for number in ends]
    looks: dict[str, Callable[[str], int]] = {
        "traverse": lambda id: len(traverse(scope=made.scope, start=id).reached),
        "subgraph": lambda id: len(subgraph(scope=made.scope, ids=[id], hops=2).vertices),
    }
    reached = True
    for name, look in looks.items():
        sizes = [look(id) for id in ids[: LOOKS // 10]]  # warms what a running site has warm
        times = sorted(timed(partial(look, id)) * 1000 for id in ids)
        p50, p95 = (times[int(len(times) * share)] for share in (0.5, 0.95))
        console.print(
            f"{name}, 2 steps, {np.mean(sizes):.0f} nodes: p50 {p50:.0f} ms, p95 {p95:.0f} ms;"
            f" p95 must be below {MUST_LOOK_MS} ms"
        )
        reached &= p95 < MUST_LOOK_MS
    return reached


def freeze() -> None:
    """As the site's web workers do when they have loaded everything: no look at all of that for
    garbage in the middle of a request."""
    gc.collect()
    gc.freeze()


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    started = perf_counter()
    work()
    return perf_counter() - started


def remove(workspace_id: int) -> None:
    for model in (Edge, Node):
        model.objects.filter(workspace=workspace_id)._raw_delete("default")
    analyse()


def analyse() -> None:
    """What a site's own vacuum does in a while."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE graph_node, graph_edge, graph_alias")


#: Each says whether it reached what it must.
PARTS: dict[str, Callable[[Made, Console], bool]] = {
    "bulk": bulk,
    "rows": rows,
    "around": around,
}


if __name__ == "__main__":
    main()
