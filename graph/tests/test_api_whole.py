"""The graph as a whole over the API: merged, counted, taken along, read again."""

import json
from typing import Any
from xml.etree import ElementTree

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Collection, Document
from documents.tests.factories import CollectionFactory, MembershipFactory
from graph.models import Edge, Extraction, Node
from graph.tests.clients import BULK, GRAPH, asked, put_edge, put_node
from graph.tests.factories import make_extracted
from tests.kit import client_of

pytestmark = pytest.mark.django_db
MERGE = f"{GRAPH}merge/"
EXTRACTIONS = f"{GRAPH}extractions/"


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
