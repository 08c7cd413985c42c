"""What the API of the graph refuses, and ids that are hard to write in an address."""

import json
from typing import Any
from urllib.parse import quote, urlencode
from xml.etree import ElementTree

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.models import Edge, Node
from graph.tests.clients import BULK, EDGES, GRAPH, NODES, asked, ids, put_edge, put_node

pytestmark = pytest.mark.django_db
IDS = {
    "quotes": "src:\"double\" 'single' `back`",
    "slashes": "src:a/b//../\\c",
    "percent": "src:100%",
    "an escaped slash": "src:a%2Fb",
    "a half escape": "src:%zz%",
    "question and hash": "src:?id=x&y=1#part",
    "plus and space": "src:a+b c  d",
    "spaces around": " src:a ",
    "SQL": "'; DROP TABLE graph_node; --",
    "patterns": "src:%_*[^a]$",
    "format": "src:{0} {id} %(id)s %s",
    "markup": "<script>alert(1)</script>&amp;]]>",
    "JSON": '{"id": "x", "a": [1]}',
    "emoji": "src:👩‍👩‍👧 🇩🇪",
    "right to left": "src:\u202eabc שלום مرحبا",
    "no NFC": "src:e\u0301",
    "replacement": "src:\ufffd",
    "long": "x" * 1024,
    "colons": ":::",
    "like a document": "doc",
    "one letter": "*",
}


def assert_refused(answer: Any, field: str) -> None:
    assert answer.status_code == 400, answer.content
    body = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert field in {fault["attr"] for fault in body["errors"]}
    assert 0 < len(body["detail"]) < 400
    assert not Node.objects.exists()
    assert not Edge.objects.exists()


@pytest.mark.parametrize(
    ("address", "query", "field"),
    [
        ("nodes", "id=a%00b", "id"),
        ("nodes", "id=a&q=b", "q"),
        ("nodes", "id=a&label=b", "label"),
        ("nodes", "q=a&cursor=b", "cursor"),
        ("nodes", "kind=document", "kind"),
        ("nodes", "q=a&kind=town", "kind"),
        ("nodes", "cursor=nonsense", "cursor"),
        ("nodes", "cursor=cD1hJTAwYg==", "cursor"),
        ("edges", "cursor=cD1h", "cursor"),
        ("edges", "cursor=WyJ4Il0", "cursor"),
        ("neighbors", "id=", "id"),
        ("neighbors", "id=a&" + "&".join(f"rel={n}" for n in range(101)), "rel"),
        ("traverse", "id=a", "id"),
        ("subgraph", "id=a&id=b&limit=1", "limit"),
        ("export", "format=graphml&extracted=true", "extracted"),
    ],
)
def test_addresses_that_cannot_be(api: APIClient, address: str, query: str, field: str) -> None:
    assert_refused(api.get(f"{GRAPH}{address}/?{query}"), field)


@pytest.mark.parametrize(
    ("url", "query"),
    [
        (NODES, ""),
        (NODES, "id="),
        (EDGES, "source=a&rel=R"),
        (EDGES, "source=a&target=b"),
    ],
)
def test_deletions_name_all_that_is_needed(api: APIClient, url: str, query: str) -> None:
    assert api.delete(f"{url}?{query}").status_code == 400


def test_a_cursor_that_is_none_is_refused(api: APIClient) -> None:
    api.put(NODES, {"id": "src:a"})
    for address in ("neighbors", "mentions"):
        for cursor in ("nonsense", "W10=", "bnVsbA=="):
            answer = api.get(f"{GRAPH}{address}/", {"id": "src:a", "cursor": cursor})
            assert answer.status_code == 400
            assert answer.json()["errors"][0]["attr"] == "cursor"


def graphml_ids(answer: Any) -> set[str | None]:
    root = ElementTree.fromstring(b"".join(answer.streaming_content))
    return {node.get("id") for node in root.iter("{http://graphml.graphdrawing.org/xmlns}node")}


@pytest.mark.nightly
def test_any_id_is_written_read_followed_and_deleted(api: APIClient) -> None:
    every = {*IDS.values()}
    for id in every:
        assert put_node(api, id, name="Named").json()["node"]["id"] == id
        put_edge(api, id, f"R {id}"[:100], "src:other")

        assert asked(api, "nodes", id=id)["id"] == id
        if id == id.strip():  # of what is typed, spaces around are none
            assert id in ids(asked(api, "nodes", q=id)["results"])
        assert asked(api, "edges", source=id)["results"][0]["source"] == id
        assert asked(api, "traverse", start=id)["reached"][0]["node"]["id"] == id
        assert asked(api, "paths", source=id, target="src:other")["length"] == 1
        assert ids(asked(api, "neighbors", id=id)["results"]) == ["src:other"]

    assert {*ids(asked(api, "neighbors", id="src:other")["results"])} == every
    drawn = asked(api, "subgraph", id=list(every))["elements"]["nodes"]
    assert {node["data"]["id"] for node in drawn} == every | {"src:other"}
    assert graphml_ids(api.get(f"{GRAPH}export/")) == every | {"src:other"}

    edges = [{"source": id, "rel": f"R {id}"[:100], "target": "src:other"} for id in every]
    lines = "\n".join(json.dumps({"edge": edge}, ensure_ascii=False) for edge in edges)
    sent: Any = api.generic("POST", BULK, lines.encode(), content_type="application/x-ndjson")
    assert sent.json()["edges"] == {"created": 0, "updated": 0, "unchanged": len(every)}

    for id, edge in zip(every, edges, strict=True):
        assert api.delete(f"{EDGES}?{urlencode(edge)}").status_code == 204
        assert api.delete(f"{NODES}?id={quote(id, safe='')}").json()["nodes"] == 1
    assert not Node.objects.filter(key__in=every).exists()
    assert not Edge.objects.exists()


def test_any_key_of_a_document_is_found(alice: Membership, api: APIClient) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug="notes")
    for key in IDS.values():
        document = DocumentFactory(collection=collection, key=key)
        ChunkFactory(document=document)
        id = f"doc:notes:{key}"
        assert asked(api, "nodes", id=id)["document"] == document.pk
        assert put_edge(api, id, "ABOUT", "src:b").json()["edge"]["source"] == id
        assert asked(api, "paths", source=f"chunk:notes:{key}:0", target="src:b")["length"] == 2
    found = ids(asked(api, "neighbors", id="src:b")["results"])
    assert sorted(found) == sorted(f"doc:notes:{key}" for key in IDS.values())


def test_ids_are_told_apart_to_the_letter(api: APIClient) -> None:
    alike = ["src:é", "src:e\u0301", "src:É", "src:é ", "src:e", "src:%C3%A9"]
    for id in alike:
        assert put_node(api, id, props={"is": id}).status_code == 201
    for id in alike:
        assert asked(api, "nodes", id=id)["props"] == {"is": id}


@pytest.mark.parametrize("method", ["get", "delete"])
def test_broken_utf8_means_no_other_id(api: APIClient, method: str) -> None:
    put_node(api, "src:Jos\ufffd")
    answer = getattr(api, method)(f"{NODES}?id=src:Jos%E9")
    assert answer.status_code == 400
    assert "UTF-8" in answer.json()["detail"]
    assert Node.objects.count() == 1


def test_ids_that_no_address_holds_are_sent_in_a_body(api: APIClient) -> None:
    id = "日" * 860
    put_edge(api, id, "KNOWS", "src:b")
    body = {"source": id, "target": "src:b"}
    assert api.post(f"{GRAPH}paths/", body).json()["length"] == 1
    gone = api.post(f"{NODES}delete/", {"ids": [id]}).json()
    assert (gone["nodes"], gone["edges"]) == (1, 1)
