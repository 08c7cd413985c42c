"""Merging keeps every edge once, who speaks for it, and the way to the node by all its names."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounts.models import Workspace
from common.errors import InvalidInput, NotFound
from documents.models import Chunk
from documents.tests.factories import ChunkFactory, DocumentFactory, MembershipFactory
from graph.inputs import EdgeInput
from graph.models import Alias, Edge, Evidence, Mention, Node
from graph.querysets import Origin
from graph.scopes import GraphScope
from graph.services import (
    get_node,
    merge_nodes,
    merge_preview,
    upsert_edge,
    upsert_many,
    upsert_node,
)
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node
from graph.tests.plain_graph import PlainGraph, stored

ADA, COUNTESS, NOTE = "ent:person:ada", "ent:name:countess", "note g"


@pytest.fixture
def chunk(db: None) -> Chunk:
    return ChunkFactory()


@pytest.fixture
def workspace(chunk: Chunk) -> Workspace:
    return chunk.workspace


def test_parallel_edges_become_one_and_keep_who_speaks_for_them(
    scope: GraphScope, chunk: Chunk
) -> None:
    ada, countess = make_extracted(ADA, chunk), make_extracted(COUNTESS, chunk)
    note = make_node(NOTE, workspace=chunk.workspace)
    found = {"origin": Origin.EXTRACTED}
    kept = make_edge(ada, "WROTE", note, weight=2, props={"year": 1842}, **found)
    lost = make_edge(countess, "WROTE", note, weight=5, props={"year": 1843, "pages": 3}, **found)
    other = ChunkFactory(document=chunk.document)
    make_evidence(chunk, kept)
    make_evidence(chunk, lost)
    make_evidence(other, lost)

    before = merge_preview(scope=scope, keep=ADA, others=[COUNTESS])
    merged = merge_nodes(scope=scope, keep=ADA, others=[COUNTESS])

    assert merged == before
    assert (before.nodes, before.edges, before.edges_joined) == (1, 0, 1)
    (edge,) = Edge.objects.all()
    assert (edge.pk, edge.weight, edge.props) == (kept.pk, 5.0, {"year": 1842, "pages": 3})
    assert {row.chunk_id for row in Evidence.objects.filter(edge=edge)} == {chunk.pk, other.pk}
    assert Evidence.objects.count() == 2


def test_edges_between_the_merged_go_and_loops_stay(scope: GraphScope) -> None:
    edges = [(ADA, "IS", COUNTESS), (COUNTESS, "IS", ADA), (COUNTESS, "KNOWS", COUNTESS)]
    upsert_many(scope=scope, edges=[EdgeInput(*edge) for edge in edges], strict=False)

    merged = merge_nodes(scope=scope, keep=ADA, others=[COUNTESS])

    assert (merged.edges_dropped, merged.edges) == (2, 1)
    assert stored(scope).edges == {(ADA, "KNOWS", ADA): (1.0, {})}


def test_mentions_in_one_passage_are_counted_together(scope: GraphScope, chunk: Chunk) -> None:
    ada = make_extracted(ADA, chunk)
    third, countess = make_node("third", workspace=chunk.workspace), make_extracted(COUNTESS, chunk)
    other = ChunkFactory(document=chunk.document)
    make_mention(chunk, third, count=4, kind=Mention.Kind.HEADING, start=3, end=9)
    make_mention(other, countess, count=2)

    merge_nodes(scope=scope, keep=ADA, others=[COUNTESS, "third"])

    rows = Mention.objects.order_by("chunk").values_list("chunk", "node", "count", "kind", "start")
    assert list(rows) == [
        (chunk.pk, ada.pk, 6, Mention.Kind.HEADING, 3),
        (other.pk, ada.pk, 2, Mention.Kind.TEXT, 0),
    ]


def test_names_and_former_ids_find_the_kept_node(scope: GraphScope) -> None:
    long = "ref:web:" + "x" * 1000
    upsert_node(scope=scope, id=ADA, name="Ada Lovelace", props={"born": 1815})
    upsert_node(scope=scope, id=COUNTESS, name="Countess", props={"born": 1, "died": 1852})
    upsert_node(scope=scope, id=long, labels=["page"])
    merge_nodes(scope=scope, keep=COUNTESS, others=[long])
    merge_nodes(scope=scope, keep=ADA, others=[COUNTESS])
    node = get_node(scope=scope, id=ADA)
    assert node is not None
    assert node.props == {"born": 1815, "died": 1852}
    assert node.labels == ("page",)

    for former in (COUNTESS, long):
        again = upsert_node(scope=scope, id=former, props={former[:3]: True})
        assert (again.created, again.node.id) == (False, ADA)
    upsert_edge(scope=scope, source=COUNTESS, rel="SAME", target=long)
    assert stored(scope).edges.keys() == {(ADA, "SAME", ADA)}
    assert Alias.objects.get(form="countess").node.key == ADA
    assert Node.objects.count() == 1


def test_what_was_found_does_not_flow_into_what_is_given(scope: GraphScope, chunk: Chunk) -> None:
    make_node(ADA, workspace=chunk.workspace, props={"a": 1})
    make_extracted(COUNTESS, chunk, labels=["secret"], props={"secret": 1})
    note = make_node(NOTE, workspace=chunk.workspace)
    for node in Node.objects.exclude(pk=note.pk):
        secret = {"props": {"s": 1}, "weight": 9, "origin": Origin.EXTRACTED}
        make_edge(node, "WROTE", note, **(secret if node.key == COUNTESS else {}))

    merge_nodes(scope=scope, keep=ADA, others=[COUNTESS])
    node = get_node(scope=scope, id=ADA)
    assert node is not None

    assert (node.labels, node.props, node.origin) == ((), {"a": 1}, "given")
    assert stored(scope).edges == {(ADA, "WROTE", NOTE): (1.0, {})}


def test_what_cannot_be_merged_is_refused(scope: GraphScope, chunk: Chunk) -> None:
    make_node(ADA, workspace=chunk.workspace)
    make_node("elsewhere")
    document = f"doc:{chunk.collection.slug}:{chunk.document.key}"
    for others, error, told in (
        (["elsewhere"], NotFound, "These nodes do not exist: “elsewhere”"),
        ([ADA], InvalidInput, "with itself"),
        ([document], InvalidInput, "is a document"),
        ([], InvalidInput, "at least one"),
    ):
        with pytest.raises(error, match=told):
            merge_nodes(scope=scope, keep=ADA, others=others)
        with pytest.raises(error, match=told):
            merge_preview(scope=scope, keep=ADA, others=others)


def test_what_is_hidden_is_neither_merged_nor_counted(chunk: Chunk) -> None:
    user = MembershipFactory(workspace=chunk.workspace).user
    hidden = ChunkFactory(document=DocumentFactory(collection=chunk.collection, access=["user:0"]))
    make_extracted(ADA, chunk, hidden)
    make_extracted(COUNTESS, chunk, hidden)
    make_extracted("ent:name:secret", hidden)
    scope = GraphScope(chunk.workspace_id, user)

    with pytest.raises(NotFound, match="These nodes do not exist: “ent:name:secret”"):
        merge_nodes(scope=scope, keep=ADA, others=["ent:name:secret"])
    merged = merge_nodes(scope=scope, keep=ADA, others=[COUNTESS])

    assert merged.mentions == 1
    assert Mention.objects.filter(node__key=ADA).count() == 2


KEYS = [f"node {number}" for number in range(6)]
EDGES = st.lists(
    st.builds(
        EdgeInput,
        st.sampled_from(KEYS),
        st.sampled_from(["A", "B"]),
        st.sampled_from(KEYS),
        st.sampled_from([1.0, 2.0, 3.0]),
    ),
    max_size=20,
)


class Merging(TestCase):
    """Whatever is merged, the tables hold what a graph of dictionaries holds."""

    @settings(max_examples=20, deadline=None)
    @given(
        edges=EDGES,
        merges=st.lists(st.sets(st.sampled_from(KEYS), min_size=2, max_size=4), max_size=3),
    )
    def test_every_edge_stays_once(self, edges: list[EdgeInput], merges: list[set[str]]) -> None:
        plain, scope = PlainGraph(), GraphScope(ChunkFactory().workspace_id)
        plain.upsert([], edges)
        upsert_many(scope=scope, edges=edges, strict=False)
        for merged in merges:
            keep, *others = sorted(merged & plain.nodes.keys()) or [""]
            if others:
                plain.merge(keep, set(others))
                merge_nodes(scope=scope, keep=keep, others=others)

        assert stored(scope) == plain
