"""Nodes over the API, walks from one to another, and what is asked of the whole graph."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Collection, Document
from documents.tests.factories import ChunkFactory, CollectionFactory, MembershipFactory
from graph.models import Edge, Extraction, Node
from graph.tests.clients import BULK, GRAPH, NODES, asked, ids, put_edge, put_node
from graph.tests.factories import make_extracted, make_node
from tests.kit import client_of

pytestmark = pytest.mark.django_db
ADA = "ent:person:ada lovelace"
MERGE = f"{GRAPH}merge/"
EXTRACTIONS = f"{GRAPH}extractions/"


def test_a_node_is_made_changed_and_left_alone(api: APIClient) -> None:
    made = put_node(api, ADA, name="Ada", labels=["Person"], props={"born": 1815})
    assert made.status_code == 201
    assert made.json() == {
        "node": {
            "id": ADA,
            "kind": "node",
            "name": "Ada",
            "labels": ["Person"],
            "origin": "given",
            "document": None,
            "chunk": None,
            "props": {"born": 1815},
        },
        "created": True,
        "changed": True,
        "taken": [],
    }

    again = put_node(api, ADA, name="Ada", labels=["Person"], props={"born": 1815})
    assert (again.status_code, again.json()["changed"]) == (200, False)

    changed = put_node(api, ADA, props={"died": 1852}).json()
    assert (changed["created"], changed["changed"]) == (False, True)
    assert changed["node"]["name"] == "Ada"
    assert changed["node"]["props"] == {"born": 1815, "died": 1852}

    replaced = put_node(api, ADA, props={"x": None}, replace_props=True).json()["node"]
    assert replaced["props"] == {"x": None}
    assert asked(api, "nodes", id=ADA) == replaced


def test_documents_and_passages_are_read_by_their_ids(note: Document, api: APIClient) -> None:
    shown = asked(api, "nodes", id="doc:notes:a.md")
    assert (shown["kind"], shown["document"], shown["name"]) == ("document", note.pk, "A note")
    shown = asked(api, "nodes", id="chunk:notes:a.md:0")
    assert (shown["kind"], shown["origin"]) == ("chunk", "derived")
    assert shown["chunk"] == note.chunks.get().pk
    assert api.get(NODES, {"id": "chunk:notes:a.md:1"}).status_code == 404


def test_nodes_are_listed_by_id_page_by_page(alice: Membership, api: APIClient) -> None:
    for number in range(5):
        labels = ["Odd" if number % 2 else "Even", "All"]
        make_node(f"src:n:{number}", workspace=alice.workspace, labels=labels)
    make_node("src:n:9")

    page, found = asked(api, "nodes", page_size=2), []
    assert page["previous"] is None
    while True:
        found += ids(page["results"])
        if page["next"] is None:
            break
        page = api.get(page["next"]).json()
    assert found == [f"src:n:{number}" for number in range(5)]
    assert ids(asked(api, "nodes", label="Odd")["results"]) == ["src:n:1", "src:n:3"]
    assert len(asked(api, "nodes", label=["Odd", "Even"])["results"]) == 5
    assert asked(api, "nodes", label="None")["results"] == []
    assert page["results"][0]["props"] is None


def test_rows_of_documents_are_not_listed(note: Document, api: APIClient) -> None:
    assert put_edge(api, "doc:notes:a.md", "ABOUT", "ent:name:x").status_code == 201
    assert Node.objects.count() == 2
    assert ids(asked(api, "nodes")["results"]) == ["ent:name:x"]


def test_nodes_are_found_by_name_kind_and_label(note: Document, api: APIClient) -> None:
    put_node(api, ADA, name="A note by Ada", labels=["Person"])
    found = asked(api, "nodes", q="a note")
    assert (sorted(ids(found["results"])), found["next"]) == (["doc:notes:a.md", ADA], None)
    assert ids(asked(api, "nodes", q="a note", kind="document")["results"]) == ["doc:notes:a.md"]
    assert asked(api, "nodes", q="a note", label="Town")["results"] == []


def test_deleting_a_node_takes_its_edges_after_a_look(api: APIClient) -> None:
    put_edge(api, "src:a", "KNOWS", "src:b")
    put_edge(api, "src:b", "KNOWS", "src:c")
    for id in ("src:a", "src:c"):
        put_node(api, id, name=id)

    looked = api.delete(f"{NODES}?id=src:b&dry_run=true")
    assert api.delete(f"{NODES}?id=src:b&preview=true").json() == looked.json()
    assert looked.status_code == 200
    assert looked.json() | {"aliases": 0, "mentions": 0} == {
        "dry_run": True,
        "preview": True,
        "nodes": 1,
        "edges": 2,
        "mentions": 0,
        "aliases": 0,
        "stubs": 0,
    }
    assert Edge.objects.count() == 2

    gone = api.delete(f"{NODES}?id=src:b")
    assert gone.json() == {**looked.json(), "dry_run": False, "preview": False}
    assert sorted(Node.objects.values_list("key", flat=True)) == ["src:a", "src:c"]
    assert api.delete(f"{NODES}?id=src:b").status_code == 404


def test_many_are_deleted_and_what_is_not_there_is_passed_over(api: APIClient) -> None:
    for number in range(3):
        put_node(api, f"src:{number}")
    body: dict[str, Any] = {"ids": ["src:0", "src:1", "src:nothing"]}

    assert api.post(f"{NODES}delete/", {**body, "dry_run": True}).json()["nodes"] == 2
    assert Node.objects.count() == 3
    assert api.post(f"{NODES}delete/", body).json()["nodes"] == 2
    assert api.post(f"{NODES}delete/", body).json()["nodes"] == 0


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


def test_nodes_are_merged_and_every_edge_stays_once(api: APIClient) -> None:
    for source in ("src:ada", "src:lovelace"):
        put_edge(api, source, "PROGRAMMED", "src:engine")
    put_edge(api, "src:lovelace", "KNOWS", "src:babbage")
    put_edge(api, "src:lovelace", "IS", "src:ada")
    body = {"keep": "src:ada", "others": ["src:lovelace"]}

    looked = api.post(MERGE, {**body, "dry_run": True}).json()
    assert Node.objects.count() == 4
    done = api.post(MERGE, body)
    assert done.status_code == 200
    assert done.json() == {**looked, "dry_run": False, "preview": False}
    assert (looked["keep"], looked["nodes"], looked["edges_joined"], looked["edges_dropped"]) == (
        "src:ada",
        1,
        1,
        1,
    )
    assert (Node.objects.count(), Edge.objects.count()) == (3, 2)
    assert asked(api, "nodes", id="src:lovelace")["id"] == "src:ada"
    assert put_edge(api, "src:lovelace", "PROGRAMMED", "src:engine").json()["created"] is False


def test_the_graph_is_exported_as_graphml(note: Document, api: APIClient) -> None:
    put_edge(api, "src:a", "KNOWS", "src:b")

    answer: Any = api.get(f"{GRAPH}export/")
    assert answer.headers["Content-Type"].startswith("application/graphml+xml")
    root = ElementTree.fromstring(b"".join(answer.streaming_content))
    names = {node.get("id") for node in root.iter("{http://graphml.graphdrawing.org/xmlns}node")}
    assert names == {"src:a", "src:b", "doc:notes:a.md"}


def test_lines_that_are_exported_are_taken_elsewhere(note: Document, api: APIClient) -> None:
    make_extracted("ent:name:found", note.chunks.get())
    put_node(api, "src:a", name="A", labels=["X"], props={"n": 1}, aliases=["Alpha"])
    put_edge(api, "src:a", "KNOWS", "src:b", weight=2)

    answer: Any = api.get(f"{GRAPH}export/", {"format": "jsonl"})
    lines = b"".join(answer.streaming_content)
    assert answer.headers["Content-Type"].startswith("application/x-ndjson")
    kinds = [next(iter(json.loads(line))) for line in lines.splitlines()]
    assert kinds == ["node", "node", "edge"]
    other = client_of(MembershipFactory())
    sent: Any = other.generic("POST", BULK, lines, content_type="application/x-ndjson")
    assert sent.json()["nodes"]["created"] == 2
    again: Any = other.get(f"{GRAPH}export/", {"format": "jsonl"})
    assert b"".join(again.streaming_content) == lines

    everything: Any = api.get(f"{GRAPH}export/", {"format": "jsonl", "extracted": "true"})
    assert b"ent:name:found" in b"".join(everything.streaming_content)


def test_a_collection_is_read_again(note: Document, api: APIClient) -> None:
    assert asked(api, "extractions", collection="notes")["waiting"] == 0

    for body, queued in (({}, 1), ({"only_stale": True}, 0)):
        answer = api.post(EXTRACTIONS, {"collection": "notes", **body})
        assert answer.status_code == 202
        assert answer.json()["queued"] == queued
    state = asked(api, "extractions", collection="notes")
    assert (state["collection"], state["graph"], state["waiting"]) == ("notes", "rules", 1)
    assert Extraction.objects.count() == 1


def test_a_collection_that_is_not_read_is_not_read_again(alice: Membership, api: APIClient) -> None:
    CollectionFactory(workspace=alice.workspace, slug="notes", graph=Collection.Graph.OFF)
    answer = api.post(EXTRACTIONS, {"collection": "notes"})
    assert (answer.status_code, answer.json()["code"]) == (409, "conflict")
    for ask in (api.get, api.post):
        assert ask(EXTRACTIONS, {"collection": "nothing"}).status_code == 404
