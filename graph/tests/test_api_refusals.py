"""What the API of the graph refuses, and how it says so."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from graph.models import Edge, Node
from graph.tests.clients import EDGES, GRAPH, NODES

pytestmark = pytest.mark.django_db
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
        ("put", NODES, {"id": "a\0b"}, "id"),
        ("put", NODES, {"id": "doc:notes:missing.md"}, "id"),
        ("put", EDGES, {**EDGE, "target": "doc:notes:missing.md"}, "target"),
        ("put", NODES, {**A, "props": {"x": "y" * 1024 * 1024}}, "props"),
        ("put", EDGES, {**EDGE, "target": "\x1f"}, "target"),
        ("put", EDGES, {**EDGE, "props": {"x": "y" * 1024 * 1024}}, "props"),
    ],
)
def test_bodies_that_cannot_be(
    api: APIClient, method: str, url: str, body: Any, field: str
) -> None:
    assert_refused(getattr(api, method)(url, body), field)


def test_half_a_character_is_no_id(api: APIClient) -> None:
    answer = api.generic("PUT", NODES, b'{"id": "\\ud83d"}', content_type="application/json")
    assert_refused(answer, "id")


def test_what_is_nested_too_deep_is_no_body(api: APIClient) -> None:
    for depth, status in ((28, 201), (40, 400), (100_000, 400)):
        props = b'{"x": ' + b"[" * depth + b"]" * depth + b"}"
        body = b'{"id": "src:a", "props": ' + props + b"}"
        answer: Any = api.generic("PUT", NODES, body, content_type="application/json")
        assert answer.status_code == status
        Node.objects.all().delete()


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
