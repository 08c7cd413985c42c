"""What is around a node, and ways between nodes, over the API."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from rest_framework.test import APIClient

from documents.models import Document
from documents.tests.factories import ChunkFactory
from graph.tests.clients import BULK, GRAPH, asked, ids, put_edge
from graph.tests.factories import make_extracted

pytestmark = pytest.mark.django_db


def chain(api: APIClient, length: int, *, circle: bool = False) -> None:
    """`src:0` to `src:<length>`, each leading to the next one."""
    steps = [(number, number + 1) for number in range(length)]
    edges = [
        {"source": f"src:{one}", "rel": "NEXT_TO", "target": f"src:{two}"}
        for one, two in [*steps, *([(length, 0)] if circle else [])]
    ]
    assert api.post(BULK, {"edges": edges, "strict": False}).status_code == 200


def test_neighbours_stand_in_natural_order_page_by_page(api: APIClient) -> None:
    for number in (10, 2, 1):
        put_edge(api, "src:a", "HAS", f"part:{number}", weight=number, props={"n": number})
    put_edge(api, "part:3", "PART_OF", "src:a")

    page = asked(api, "neighbors", id="src:a", limit=3)
    assert ids(page["results"]) == ["part:1", "part:2", "part:3"]
    assert (page["node"]["id"], page["total"]) == ("src:a", 4)
    assert [each["direction"] for each in page["results"]] == ["out", "out", "in"]
    assert page["results"][0]["props"] == {"n": 1}
    rest = api.get(page["next"]).json()
    assert (ids(rest["results"]), rest["next"]) == (["part:10"], None)

    assert ids(asked(api, "neighbors", id="src:a", direction="in")["results"]) == ["part:3"]
    assert asked(api, "neighbors", id="src:a", rel="HAS")["total"] == 3
    assert asked(api, "neighbors", id="src:a", rel=["HAS", "PART_OF"])["total"] == 4
    assert asked(api, "neighbors", id="src:a", rel="NONE")["results"] == []


def test_a_page_has_no_more_properties_than_it_can_bear(api: APIClient) -> None:
    edges = [
        {"source": "src:a", "rel": "HAS", "target": f"part:{number}", "props": {"x": "y" * 900_000}}
        for number in range(12)
    ]
    assert api.post(BULK, {"edges": edges, "strict": False}).status_code == 200

    results = asked(api, "neighbors", id="src:a")["results"]
    assert len(results) == 12
    has_props = [each["props"] is not None for each in results]
    assert has_props == [True] * 9 + [False] * 3
    (edge,) = asked(api, "edges", source="src:a", rel="HAS", target="part:11")["results"]
    assert edge["props"] == edges[11]["props"]


def test_passages_that_speak_of_a_node_are_listed(note: Document, api: APIClient) -> None:
    for _ in range(2):
        ChunkFactory(document=note, text="Of an engine.")
    make_extracted("ent:name:engine", *note.chunks.order_by("ordinal"))

    page = asked(api, "mentions", id="ent:name:engine", limit=2)
    assert [each["passage"]["id"] for each in page["results"]] == [
        "chunk:notes:a.md:0",
        "chunk:notes:a.md:1",
    ]
    assert page["results"][0]["document"]["id"] == "doc:notes:a.md"
    assert "engine" in page["results"][0]["snippet"]
    rest = api.get(page["next"]).json()
    assert [each["passage"]["id"] for each in rest["results"]] == ["chunk:notes:a.md:2"]
    assert rest["next"] is None


def test_a_walk_tells_depths_and_last_steps(api: APIClient) -> None:
    chain(api, 3, circle=True)
    walked = asked(api, "traverse", start="src:0", max_depth=2, direction="out")
    first, *_, last = walked["reached"]
    assert (first["node"]["id"], first["depth"]) == ("src:0", 0)
    assert (first["parent"], first["rel"], first["direction"]) == (None, None, None)
    assert (last["node"]["id"], last["depth"]) == ("src:2", 2)
    assert (last["parent"], last["rel"], last["direction"]) == ("src:1", "NEXT_TO", "out")
    cut = asked(api, "traverse", start="src:0", limit=2)
    assert (len(cut["reached"]), cut["truncated"]["limit"]) == (2, True)


def test_a_way_is_found_or_there_is_none(api: APIClient) -> None:
    chain(api, 3)
    way = asked(api, "paths", source="src:3", target="src:1")
    assert (way["found"], way["length"]) == (True, 2)
    assert ids(way["nodes"]) == ["src:3", "src:2", "src:1"]
    assert [edge["target"] for edge in way["edges"]] == ["src:3", "src:2"]

    for narrowed in ({"direction": "out"}, {"rel": "OTHER"}, {"max_depth": 1}):
        none = asked(api, "paths", source="src:3", target="src:1", **narrowed)
        assert (none["found"], none["length"]) == (False, None)
        assert (none["nodes"], none["edges"]) == ([], [])


def test_what_is_around_nodes_is_taken_for_cytoscape_and_as_graphml(api: APIClient) -> None:
    chain(api, 3, circle=True)
    taken = asked(api, "subgraph", id=["src:0", "src:nothing"], hops=1)
    elements = taken["elements"]
    assert {node["data"]["id"] for node in elements["nodes"]} == {"src:0", "src:1", "src:3"}
    assert {(edge["data"]["source"], edge["data"]["target"]) for edge in elements["edges"]} == {
        ("src:0", "src:1"),
        ("src:3", "src:0"),
    }
    assert (taken["missing"], taken["truncated"]["limit"]) == (["src:nothing"], False)

    answer: Any = api.get(f"{GRAPH}subgraph/", {"id": "src:0", "format": "graphml"})
    assert answer.headers["Content-Type"].startswith("application/graphml+xml")
    assert 'attachment; filename="graph-' in answer.headers["Content-Disposition"]
    root = ElementTree.fromstring(b"".join(answer.streaming_content))
    assert len(root.findall(".//{http://graphml.graphdrawing.org/xmlns}node")) == 3


def test_walks_may_be_asked_with_a_body(api: APIClient) -> None:
    chain(api, 3)
    for address, body in {
        "traverse": {"start": "src:0", "max_depth": 3, "rel": ["NEXT_TO"]},
        "paths": {"source": "src:0", "target": "src:3"},
        "subgraph": {"id": ["src:0"], "hops": 2},
    }.items():
        posted = api.post(f"{GRAPH}{address}/", body)
        assert posted.status_code == 200
        assert posted.json() == asked(api, address, **body)
        assert json.dumps(posted.json()).count("src:") > 3
