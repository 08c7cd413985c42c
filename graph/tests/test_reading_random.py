"""Whatever a graph looks like: what is read of it agrees with networkx."""

from typing import Any

import networkx as nx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from documents.tests.factories import WorkspaceFactory
from graph.models import Edge, Node
from graph.node_ids import natural_sort_key
from graph.reading.steps import Direction
from graph.scopes import GraphScope
from graph.services import neighbors, shortest_path, subgraph, traverse

RELS = ("KNOWS", "LIKES")
#: Numbers of one and of two digits: natural order is not that of the letters.
NAMES = tuple(f"n:{number}" for number in (1, 2, 3, 9, 10, 11, 20, 100))
#: Directed, with cycles, self-loops and several relations between the same two.
relations = st.sets(
    st.tuples(st.sampled_from(NAMES), st.sampled_from(RELS), st.sampled_from(NAMES)), max_size=24
)
#: Where there is room for one more, two relations lead to the same and a third to another.
PARALLEL = {
    ("n:1", "KNOWS", "n:2"),
    ("n:1", "KNOWS", "n:10"),
    ("n:3", "KNOWS", "n:10"),
    ("n:11", "KNOWS", "n:10"),
    ("n:11", "LIKES", "n:10"),
}
names = st.sampled_from(NAMES)
some_rels = st.sampled_from([(), ("KNOWS",), ("LIKES",), RELS, ("NOBODY",)])
directions = st.sampled_from(["both", "out", "in"])


def build(told: set[tuple[str, str, str]]) -> GraphScope:
    workspace = WorkspaceFactory()
    rows = Node.objects.bulk_create([Node(workspace=workspace, key=name) for name in NAMES])
    nodes = {node.key: node for node in rows}
    Edge.objects.bulk_create(
        [
            Edge(
                workspace=workspace,
                source=nodes[source],
                rel=rel,
                target=nodes[target],
                weight=len(source),
            )
            for source, rel, target in sorted(told)
        ]
    )
    return GraphScope(workspace.pk)


def expected(
    told: set[tuple[str, str, str]], rels: tuple[str, ...] = (), direction: Direction = "both"
) -> "nx.DiGraph[str]":
    """The graph whose arrows may be followed."""
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_nodes_from(NAMES)
    for source, rel, target in told:
        if not rels or rel in rels:
            if direction != "in":
                graph.add_edge(source, target)
            if direction != "out":
                graph.add_edge(target, source)
    return graph


class RandomGraphs(TestCase):
    @settings(max_examples=30, deadline=None)
    @given(
        told=relations, start=names, rels=some_rels, direction=directions, page=st.integers(1, 9)
    )
    def test_neighbours_come_once_each_in_natural_order_over_all_pages(
        self, told: set[Any], start: str, rels: tuple[str, ...], direction: Direction, page: int
    ) -> None:
        scope = build(told)
        found: list[tuple[str, str, bool]] = []
        cursor = ""
        while True:
            result = neighbors(
                scope=scope, id=start, rel=rels, direction=direction, limit=page, cursor=cursor
            )
            found += [(each.vertex.id, each.rel, each.outgoing) for each in result.items]
            if not (cursor := result.next):
                break
            assert len(result.items) == page
        out = {(t, rel, True) for s, rel, t in told if s == start}
        into = {
            (s, rel, False) for s, rel, t in told if t == start and (s != t or direction == "in")
        }
        wanted = {"both": out | into, "out": out, "in": into}[direction]
        wanted = {each for each in wanted if not rels or each[1] in rels}
        assert found == sorted(wanted, key=lambda each: (natural_sort_key(each[0]), *each[1:]))
        assert result.total == len(wanted)
        assert not result.truncated

    @settings(max_examples=30, deadline=None)
    @given(
        told=relations, start=names, rels=some_rels, direction=directions, depth=st.integers(0, 100)
    )
    def test_a_traversal_tells_how_far_everything_is(
        self, told: set[Any], start: str, rels: tuple[str, ...], direction: Direction, depth: int
    ) -> None:
        result = traverse(
            scope=build(told), start=start, max_depth=depth, rels=rels, direction=direction
        )
        graph = expected(told, rels, direction)
        assert {each.vertex.id: each.depth for each in result.items} == (
            nx.single_source_shortest_path_length(graph, start, cutoff=depth)
        )
        depths = [each.depth for each in result.items]
        assert depths == sorted(depths)
        by_id = {each.vertex.id: each for each in result.items}
        for each in result.items[1:]:
            assert by_id[each.parent].depth == each.depth - 1
            step = (each.parent, each.rel, each.vertex.id)
            assert (step if each.outgoing else step[::-1]) in told
        assert not result.truncated

    @settings(max_examples=30, deadline=None)
    @example(told=PARALLEL, start="n:1", limit=4)
    @given(told=relations, start=names, limit=st.integers(1, 8))
    def test_a_bounded_traversal_holds_the_nearest_and_says_so(
        self, told: set[Any], start: str, limit: int
    ) -> None:
        result = traverse(scope=build(told), start=start, max_depth=100, limit=limit)
        far = nx.single_source_shortest_path_length(expected(told), start)
        found = {each.vertex.id: each.depth for each in result.items}
        assert len(found) == min(limit, len(far))
        assert found.items() <= far.items()
        left_out = [depth for name, depth in far.items() if name not in found]
        assert not left_out or max(found.values()) <= min(left_out)
        assert result.truncated.limit == bool(left_out)

    @settings(max_examples=40, deadline=None)
    @given(
        told=relations,
        source=names,
        target=names,
        rels=some_rels,
        direction=directions,
        depth=st.integers(0, 8),
    )
    def test_a_shortest_path_is_as_short_as_can_be_and_really_there(
        self,
        told: set[Any],
        source: str,
        target: str,
        rels: tuple[str, ...],
        direction: Direction,
        depth: int,
    ) -> None:
        scope = build(told)
        result = shortest_path(
            scope=scope,
            source=source,
            target=target,
            rels=rels,
            direction=direction,
            max_depth=depth,
        )
        graph = expected(told, rels, direction)
        far = nx.single_source_shortest_path_length(graph, source).get(target)
        assert not result.truncated
        if far is None or far > depth:
            assert not result.found
            return
        assert result.found
        assert result.length == far
        passed = [vertex.id for vertex in result.vertices]
        assert (passed[0], passed[-1]) == (source, target)
        for here, there, link in zip(passed, passed[1:], result.links, strict=False):
            assert (link.source, link.rel, link.target) in told
            assert {here, there} == {link.source, link.target}
            assert direction != "out" or (link.source, link.target) == (here, there)
            assert direction != "in" or (link.source, link.target) == (there, here)

    @settings(max_examples=30, deadline=None)
    @given(
        told=relations,
        starts=st.lists(names, min_size=1, max_size=3, unique=True),
        hops=st.integers(0, 5),
        rels=some_rels,
        cap=st.integers(3, 8),
    )
    def test_a_subgraph_has_all_relations_among_its_vertices(
        self, told: set[Any], starts: list[str], hops: int, rels: tuple[str, ...], cap: int
    ) -> None:
        result = subgraph(scope=build(told), ids=starts, hops=hops, rels=rels, cap=cap)
        graph = expected(told, rels)
        around = set().union(
            *(nx.single_source_shortest_path_length(graph, start, cutoff=hops) for start in starts)
        )
        found = [vertex.id for vertex in result.vertices]
        assert found[: len(starts)] == starts
        assert len(found) == len(set(found)) == min(cap, len(around))
        assert set(found) <= around
        assert result.truncated.limit == (len(around) > cap)
        links = {(link.source, link.rel, link.target) for link in result.links}
        assert len(links) == len(result.links)
        assert links == {
            (source, rel, target)
            for source, rel, target in told
            if {source, target} <= set(found) and (not rels or rel in rels)
        }
        for start in starts:
            counted = [
                ends for *ends, rel in ((s, t, r) for s, r, t in told) if not rels or rel in rels
            ]
            beside = sum(start in ends for ends in counted)
            drawn_only = sum(start in (link.source, link.target) for link in result.links)
            assert result.degrees.get(start, 0) == (beside if hops else drawn_only)
