"""GraphML that other programs read, and what cytoscape.js draws."""

import json
from io import BytesIO

import networkx as nx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree

from common.errors import NotFound
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.models import Node
from graph.reading import export
from graph.reading.results import Link
from graph.reading.vertices import Vertex
from graph.scopes import GraphScope
from graph.services import export_cytoscape, export_graphml, subgraph
from graph.tests.factories import make_edge, make_extracted, make_node

texts = st.text(max_size=30)


def parsed(content: bytes) -> "nx.MultiDiGraph[str]":
    graph = nx.read_graphml(BytesIO(content), force_multigraph=True)
    assert isinstance(graph, nx.MultiDiGraph)
    return graph


@given(name=texts, label=texts, prop=texts, weight=st.floats(0, 1e9))
def test_any_text_comes_through(name: str, label: str, prop: str, weight: float) -> None:
    ends = [
        Vertex("node", number, f"{number}{name}", name, (label,), {prop: prop}) for number in (1, 2)
    ]
    link = Link(ends[0].id, label, ends[1].id, weight)
    content = (
        export.GRAPHML_HEAD
        + export.nodes_text(ends)
        + export.edges_text([link])
        + export.GRAPHML_TAIL
    )
    graph = parsed(content.encode())
    assert len(graph) == 2
    ((source, target, told),) = graph.edges(data=True)
    assert (source[0], target[0], told["weight"]) == ("1", "2", weight)
    if all(letter.isprintable() or letter in "\t\n\r" for letter in name + label + prop):
        node = graph.nodes[ends[0].id]
        assert node.get("name", "") == name
        assert json.loads(node["labels"]) == [label]
        assert json.loads(node["props"]) == {prop: prop}
        assert told.get("rel", "") == label


def test_characters_that_xml_cannot_hold_are_written_out() -> None:
    vertex = Vertex("node", 1, "a\x01b", "bell \x07, half \ud83d, non \uffff, ok \U0001f600")
    content = export.GRAPHML_HEAD + export.nodes_text([vertex]) + export.GRAPHML_TAIL
    (node,) = parsed(content.encode()).nodes(data=True)
    assert node[0] == "a\\x01b"
    assert node[1]["name"] == "bell \\x07, half \\ud83d, non \\uffff, ok \U0001f600"


@pytest.mark.django_db
class TestExports:
    @pytest.fixture
    def scope(self) -> GraphScope:
        chunk = ChunkFactory(
            document=DocumentFactory(
                collection=CollectionFactory(slug="notes"), key="a/b 'c'", title="<Title> & more"
            )
        )
        ada = make_extracted("ent:name:ada", chunk, name="Ada", labels=["Person"])
        other = make_node("x", workspace=chunk.workspace, props={"since": [1, "ä"]})
        make_edge(ada, "KNOWS", other, weight=2.5)
        make_edge(ada, "LIKES", other)
        make_edge(other, "KNOWS", other)
        return GraphScope(chunk.workspace_id)

    def test_the_whole_graph_is_read_by_networkx(self, scope: GraphScope) -> None:
        parts = list(export_graphml(scope=scope))
        assert len(parts) > 3
        graph = parsed(b"".join(parts))
        assert set(graph) == {"ent:name:ada", "x", "doc:notes:a/b 'c'"}
        assert graph.nodes["doc:notes:a/b 'c'"]["name"] == "<Title> & more"
        assert graph.nodes["ent:name:ada"]["labels"] == '["Person"]'
        assert json.loads(graph.nodes["x"]["props"]) == {"since": [1, "ä"]}
        assert sorted(
            (s, told["rel"], t, told["weight"]) for s, t, told in graph.edges(data=True)
        ) == [
            ("doc:notes:a/b 'c'", "MENTIONS", "ent:name:ada", 1),
            ("ent:name:ada", "KNOWS", "x", 2.5),
            ("ent:name:ada", "LIKES", "x", 1),
            ("x", "KNOWS", "x", 1),
        ]

    def test_a_part_of_it_is_what_is_around_some_ids(self, scope: GraphScope) -> None:
        content = b"".join(export_graphml(scope=scope, ids=["x"], rels=["LIKES"]))
        assert etree.fromstring(content).tag.endswith("}graphml")
        graph = parsed(content)
        assert set(graph) == {"x", "ent:name:ada"}
        assert [told["rel"] for _, _, told in graph.edges(data=True)] == ["LIKES"]

    def test_labels_narrow_the_whole_graph(self, scope: GraphScope) -> None:
        graph = parsed(b"".join(export_graphml(scope=scope, labels=["Person"])))
        assert set(graph) == {"ent:name:ada"}

    def test_a_graph_of_nothing_is_a_graph(self, scope: GraphScope) -> None:
        graph = parsed(b"".join(export_graphml(scope=GraphScope(scope.workspace_id + 1000))))
        assert len(graph) == 0

    def test_what_is_not_there_is_told_before_the_first_byte(self, scope: GraphScope) -> None:
        with pytest.raises(NotFound, match="None of these"):
            export_graphml(scope=scope, ids=["nobody"])

    def test_more_than_a_batch_comes_whole(self, scope: GraphScope) -> None:
        Node.objects.bulk_create(
            Node(workspace_id=scope.workspace_id, key=f"many:{number}") for number in range(2_500)
        )
        graph = parsed(b"".join(export_graphml(scope=scope)))
        assert sum(name.startswith("many:") for name in graph) == 2_500

    def test_cytoscape_gets_elements_and_what_was_left_out(self, scope: GraphScope) -> None:
        told = export_cytoscape(subgraph(scope=scope, ids=["ent:name:ada"], cap=2))
        assert json.loads(json.dumps(told)) == told
        nodes = [node["data"] for node in told["elements"]["nodes"]]
        assert nodes[0] == {
            "id": "ent:name:ada",
            "name": "Ada",
            "labels": ["Person"],
            "kind": "node",
            "degree": 3,
            "origin": "extracted",
        }
        ends = {node["id"] for node in nodes}
        edges = [edge["data"] for edge in told["elements"]["edges"]]
        assert edges
        assert all({edge["source"], edge["target"]} <= ends for edge in edges)
        assert len({edge["id"] for edge in edges}) == len(edges)
        assert told["truncated"] == {"limit": True, "hubs": [], "work": False}
