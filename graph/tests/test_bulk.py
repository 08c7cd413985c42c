"""A million or one: all or none, each once, and only what is new is written."""

from functools import partial

import pytest
from django.db import connection, transaction
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from common.errors import InvalidInput
from documents.tests.factories import WorkspaceFactory
from graph.models import Alias, Edge, Node
from graph.reading.vertices import resolve
from graph.scopes import AccessFilter, GraphScope
from graph.services import (
    EdgeInput,
    MissingNode,
    NodeInput,
    delete_nodes,
    merge_nodes,
    upsert_edge,
    upsert_many,
    upsert_node,
)
from graph.services.upsert import UpsertResult
from graph.tests.plain_graph import PlainGraph, stored
from graph.tests.test_keys import of_size
from tests.kit import at_once


def make_scope() -> GraphScope:
    return GraphScope(WorkspaceFactory().pk)


def versions() -> set[tuple[str, str, int]]:
    """Which version of each row the tables hold: writing one makes another, even of the same."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 'node', ctid::text, id FROM graph_node"
            " UNION ALL SELECT 'edge', ctid::text, id FROM graph_edge"
            " UNION ALL SELECT 'alias', ctid::text, id FROM graph_alias"
        )
        return set(cursor.fetchall())


NODES = [NodeInput(f"ent:name:{name}", name, ["x"], {"of": name}) for name in "abc"]
EDGES = [
    EdgeInput("ent:name:a", "KNOWS", "ent:name:b", 2, {"since": 1}),
    EdgeInput("ent:name:b", "KNOWS", "ent:name:c"),
    EdgeInput("ent:name:c", "KNOWS", "ent:name:c"),
]


@pytest.mark.django_db
def test_the_same_again_writes_nothing() -> None:
    scope = make_scope()
    first = upsert_many(scope=scope, nodes=iter(NODES), edges=iter(EDGES))
    before = versions()
    again = upsert_many(scope=scope, nodes=NODES, edges=EDGES)

    assert first == UpsertResult(nodes_created=3, edges_created=3)
    assert again == UpsertResult()
    assert versions() == before


@pytest.mark.django_db
def test_other_properties_change_their_rows_and_add_none() -> None:
    scope = make_scope()
    upsert_many(scope=scope, nodes=NODES, edges=EDGES)
    changed = [EdgeInput(edge.source, edge.rel, edge.target, props={"n": 1}) for edge in EDGES[:2]]
    written = upsert_many(scope=scope, nodes=[NodeInput("ent:name:a", labels=[])], edges=changed)

    assert written == UpsertResult(nodes_updated=1, edges_updated=2)
    assert Edge.objects.count() == Node.objects.count() == 3
    assert stored(scope).edges["ent:name:a", "KNOWS", "ent:name:b"] == (2.0, {"since": 1, "n": 1})
    upsert_many(scope=scope, edges=changed, replace_props=True)
    assert stored(scope).edges["ent:name:a", "KNOWS", "ent:name:b"] == (2.0, {"n": 1})


@pytest.mark.django_db
def test_missing_ends_are_all_named_or_made() -> None:
    scope = make_scope()
    edges = [EdgeInput("a", "R", "b"), EdgeInput("b", "R", "c"), EdgeInput("a", "R", "b")]
    with pytest.raises(MissingNode, match="“a”, “b”, “c”") as refused:
        upsert_many(scope=scope, edges=edges)
    assert refused.value.ids == ("a", "b", "c")

    assert upsert_many(scope=scope, edges=edges, strict=False) == (
        UpsertResult(stubs=3, edges_created=2)
    )
    assert set(Node.objects.values_list("is_stub", flat=True)) == {True}
    assert upsert_node(scope=scope, id="a", labels=["x"]).changed
    assert not Node.objects.get(key="a").is_stub


@pytest.mark.django_db
def test_properties_grow_to_a_megabyte_and_not_beyond() -> None:
    scope = make_scope()
    upsert_node(scope=scope, id="a", props=of_size(1024 * 1024))
    for write in (
        lambda: upsert_node(scope=scope, id="a", props={"more": 1}),
        lambda: upsert_edge(scope=scope, source="a", rel="R", target="a", props={"more": 1}),
    ):
        upsert_edge(scope=scope, source="a", rel="R", target="a", props=of_size(1024 * 1024))
        with pytest.raises(InvalidInput, match="these have 1,048,58"), transaction.atomic():
            write()
    replaced = upsert_node(scope=scope, id="a", props={"more": 1}, replace_props=True)
    assert replaced.node.props == {"more": 1}


@pytest.mark.django_db
def test_another_workspace_has_nodes_of_its_own() -> None:
    scope, other = make_scope(), make_scope()
    for each in (scope, other):
        upsert_many(scope=each, nodes=NODES, edges=EDGES)
    upsert_node(scope=other, id="ent:name:a", props={"of": "other"})

    assert stored(scope).nodes["ent:name:a"][2] == {"of": "a"}
    with pytest.raises(MissingNode):
        upsert_edge(scope=make_scope(), source="ent:name:a", rel="R", target="ent:name:b")


@pytest.mark.django_db(transaction=True)
def test_those_who_write_the_same_at_once_make_each_row_once() -> None:
    scope = make_scope()
    nodes = [NodeInput(f"ent:name:n{number}", f"N {number}") for number in range(30)]
    edges = [
        EdgeInput(source.id, "R", target.id, props={}) for source in nodes for target in nodes[:5]
    ]

    def write(step: int, year: int) -> UpsertResult:
        ordered = edges[::step]
        changed = [EdgeInput(e.source, e.rel, e.target, props={"y": year}) for e in ordered]
        return upsert_many(scope=scope, nodes=nodes[::step], edges=changed, strict=False)

    for year in range(3):
        written = at_once(
            partial(write, 1, year), partial(write, -1, year), partial(write, 1, year + 10)
        )
        made = sum(each.edges_created for each in written if isinstance(each, UpsertResult))
        assert made == (150 if year == 0 else 0)
        assert Edge.objects.count() == 150
    assert Node.objects.count() == Alias.objects.count() == 30


@pytest.mark.django_db(transaction=True)
def test_writing_merging_and_deleting_at_once_leave_a_whole_graph() -> None:
    ids = [f"n{number}" for number in range(12)]
    edges = [EdgeInput(source, "R", target) for source in ids for target in ids]
    for _ in range(3):
        scope = make_scope()
        upsert_many(scope=scope, edges=edges, strict=False)
        at_once(
            partial(upsert_many, scope=scope, edges=edges, strict=False),
            partial(merge_nodes, scope=scope, keep="n3", others=["n1", "n2"]),
            partial(delete_nodes, scope=scope, ids=ids[6:]),
        )
        graph = stored(scope)
        assert {end for source, _, target in graph.edges for end in (source, target)} <= (
            graph.nodes.keys()
        )
        assert not graph.nodes.keys() & {"n1", "n2"}
        assert resolve(AccessFilter(scope), ["n1"])["n1"].id == "n3"


IDS = st.sampled_from(["a", "b", "c", "d"])
PROPS = st.none() | st.dictionaries(st.sampled_from("xyz"), st.integers(0, 2), max_size=2)
BATCHES = st.lists(
    st.tuples(
        st.lists(
            st.builds(
                NodeInput,
                IDS,
                st.none() | st.sampled_from(["", "A", "B"]),
                st.none() | st.lists(st.sampled_from("pq"), max_size=2, unique=True),
                PROPS,
            ),
            max_size=4,
        ),
        st.lists(
            st.builds(
                EdgeInput,
                IDS,
                st.sampled_from(["R", "S"]),
                IDS,
                st.none() | st.sampled_from([0, 1.5]),
                PROPS,
            ),
            max_size=6,
        ),
    ),
    max_size=3,
)


class Writing(TestCase):
    """Whatever is written, the tables hold what a graph of dictionaries holds."""

    @settings(max_examples=20, deadline=None)
    @given(batches=BATCHES)
    def test_batches_agree_with_dictionaries(
        self, batches: list[tuple[list[NodeInput], list[EdgeInput]]]
    ) -> None:
        plain, scope = PlainGraph(), make_scope()
        for nodes, edges in batches:
            plain.upsert(nodes, edges)
            upsert_many(scope=scope, nodes=nodes, edges=edges, strict=False)
            assert stored(scope) == plain
            assert upsert_many(scope=scope, nodes=[], edges=[]) == UpsertResult()
