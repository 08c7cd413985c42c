"""What the API of the graph refuses, and how it says so."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from graph.models import Edge, Node
from graph.tests.clients import EDGES, GRAPH, NODES

pytestmark = pytest.mark.django_db
MERGE = f"{GRAPH}merge/"
A = {"id": "src:a"}
EDGE = {"source": "src:a", "rel": "R", "target": "src:b", "strict": False}


def assert_refused(answer: Any, field: str) -> None:
    assert answer.status_code == 400, answer.content
    body = answer.json()
    assert list(body) == ["type", "code", "detail", "errors"]
    assert field in {fault["attr"] for fault in body["errors"]}
    assert 0 < len(body["detail"]) < 400
    assert not Node.objects.exists()
    assert not Edge.objects.exists()


@pytest.mark.parametrize(
    ("method", "url", "body", "field"),
    [
        ("put", NODES, {}, "id"),
        ("put", NODES, {"id": ""}, "id"),
        ("put", NODES, {"id": 7}, "id"),
        ("put", NODES, {"id": ["src:a"]}, "id"),
        ("put", NODES, {"id": "a\0b"}, "id"),
        ("put", NODES, {"id": "x" * 1025}, "id"),
        ("put", NODES, {"id": "doc:notes:missing.md"}, "id"),
        ("put", EDGES, {**EDGE, "target": "doc:notes:missing.md"}, "target"),
        ("put", NODES, {**A, "name": 7}, "name"),
        ("put", NODES, {**A, "labels": "Person"}, "labels"),
        ("put", NODES, {**A, "labels": [7]}, "labels.0"),
        ("put", NODES, {**A, "labels": ["x" * 101]}, "labels.0"),
        ("put", NODES, {**A, "labels": ["x"] * 33}, "labels"),
        ("put", NODES, {**A, "props": [1]}, "props"),
        ("put", NODES, {**A, "props": {"x": "y" * 1024 * 1024}}, "props"),
        ("put", NODES, {**A, "origin": "extracted"}, "origin"),
        ("put", NODES, {**A, "document": 1}, "document"),
        ("put", EDGES, {}, "source"),
        ("put", EDGES, {**EDGE, "rel": ""}, "rel"),
        ("put", EDGES, {**EDGE, "target": "\x1f"}, "target"),
        ("put", EDGES, {**EDGE, "weight": -1}, "weight"),
        ("put", EDGES, {**EDGE, "weight": "heavy"}, "weight"),
        ("put", EDGES, {**EDGE, "props": {"x": "y" * 1024 * 1024}}, "props"),
        ("put", EDGES, {**EDGE, "strict": "maybe"}, "strict"),
        ("put", EDGES, {**EDGE, "id": "x"}, "id"),
        ("post", f"{NODES}delete/", {"ids": []}, "ids"),
        ("post", f"{NODES}delete/", {"ids": "src:a"}, "ids"),
        ("post", f"{NODES}delete/", {"ids": ["x"] * 1001}, "ids"),
        ("post", MERGE, {"keep": "src:a"}, "others"),
        ("post", MERGE, {"keep": "src:a", "others": []}, "others"),
        ("post", MERGE, {"keep": "src:a", "others": ["x"] * 101}, "others"),
        ("post", MERGE, {"keep": "", "others": ["src:a"]}, "keep"),
        ("post", f"{GRAPH}traverse/", {"start": "src:a", "max_depth": 101}, "max_depth"),
        ("post", f"{GRAPH}traverse/", {"start": "src:a", "rel": "R"}, "rel"),
        ("post", f"{GRAPH}paths/", {"source": "src:a"}, "target"),
        ("post", f"{GRAPH}subgraph/", {"id": "src:a"}, "id"),
        ("post", f"{GRAPH}subgraph/", {"id": ["x"] * 101}, "id"),
        ("post", f"{GRAPH}extractions/", {"collection": "a b"}, "collection"),
    ],
)
def test_bodies_that_cannot_be(
    client: APIClient, method: str, url: str, body: Any, field: str
) -> None:
    assert_refused(getattr(client, method)(url, body), field)


def test_half_a_character_is_no_id(client: APIClient) -> None:
    answer = client.generic("PUT", NODES, b'{"id": "\\ud83d"}', content_type="application/json")
    assert_refused(answer, "id")


def test_what_is_nested_too_deep_is_no_body(client: APIClient) -> None:
    for depth, status in ((28, 201), (40, 400), (100_000, 400)):
        props = b'{"x": ' + b"[" * depth + b"]" * depth + b"}"
        body = b'{"id": "src:a", "props": ' + props + b"}"
        answer: Any = client.generic("PUT", NODES, body, content_type="application/json")
        assert answer.status_code == status
        Node.objects.all().delete()


@pytest.mark.parametrize(
    ("address", "query", "field"),
    [
        ("nodes", "id=a%00b", "id"),
        ("nodes", "id=" + "x" * 1201, "id"),
        ("nodes", "id=a&q=b", "q"),
        ("nodes", "id=a&label=b", "label"),
        ("nodes", "q=a&cursor=b", "cursor"),
        ("nodes", "kind=document", "kind"),
        ("nodes", "q=a&kind=town", "kind"),
        ("nodes", "page_size=0", "page_size"),
        ("nodes", "page_size=201", "page_size"),
        ("nodes", "cursor=nonsense", "cursor"),
        ("nodes", "cursor=cD1hJTAwYg==", "cursor"),
        ("nodes", "lable=x", "lable"),
        ("edges", "rel=" + "x" * 101, "rel"),
        ("edges", "cursor=cD1h", "cursor"),
        ("edges", "cursor=WyJ4Il0", "cursor"),
        ("neighbors", "", "id"),
        ("neighbors", "id=", "id"),
        ("neighbors", "id=a&direction=up", "direction"),
        ("neighbors", "id=a&grain=page", "grain"),
        ("neighbors", "id=a&limit=1001", "limit"),
        ("neighbors", "id=a&limit=x", "limit"),
        ("neighbors", "id=a&" + "&".join(f"rel={n}" for n in range(101)), "rel"),
        ("neighbors", "id=a&cursor=" + "x" * 10_001, "cursor"),
        ("mentions", "id=a&limit=101", "limit"),
        ("traverse", "start=a&max_depth=0", "max_depth"),
        ("traverse", "start=a&max_depth=101", "max_depth"),
        ("traverse", "start=a&limit=10001", "limit"),
        ("traverse", "id=a", "id"),
        ("traverse", "", "start"),
        ("paths", "source=a", "target"),
        ("paths", "source=a&target=b&max_depth=101", "max_depth"),
        ("subgraph", "", "id"),
        ("subgraph", "id=a&hops=6", "hops"),
        ("subgraph", "id=a&limit=5001", "limit"),
        ("subgraph", "id=a&id=b&limit=1", "limit"),
        ("subgraph", "id=a&format=dot", "format"),
        ("export", "format=dot", "format"),
        ("export", "format=graphml&extracted=true", "extracted"),
        ("extractions", "", "collection"),
        ("stats", "workspace=a%20b", "workspace"),
    ],
)
def test_addresses_that_cannot_be(client: APIClient, address: str, query: str, field: str) -> None:
    assert_refused(client.get(f"{GRAPH}{address}/?{query}"), field)


@pytest.mark.parametrize(
    ("url", "query"),
    [
        (NODES, ""),
        (NODES, "id="),
        (EDGES, "source=a&rel=R"),
        (EDGES, "source=a&target=b"),
    ],
)
def test_deletions_name_all_that_is_needed(client: APIClient, url: str, query: str) -> None:
    assert client.delete(f"{url}?{query}").status_code == 400


def test_a_cursor_that_is_none_is_refused(client: APIClient) -> None:
    client.put(NODES, {"id": "src:a"})
    for address in ("neighbors", "mentions"):
        for cursor in ("nonsense", "W10=", "bnVsbA=="):
            answer = client.get(f"{GRAPH}{address}/", {"id": "src:a", "cursor": cursor})
            assert answer.status_code == 400
            assert answer.json()["errors"][0]["attr"] == "cursor"
