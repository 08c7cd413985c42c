"""What the API of the graph refuses, and how it says so."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from graph.models import Edge, Node
from graph.tests.clients import EDGES, GRAPH, NODES

pytestmark = pytest.mark.django_db


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
