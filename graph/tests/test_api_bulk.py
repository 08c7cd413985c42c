"""Many nodes and edges at once, over the API."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from graph.api import bulk
from graph.models import Edge, Node
from graph.tests.clients import BULK

pytestmark = pytest.mark.django_db

NODE = {"id": "src:a", "name": "A", "labels": ["Thing"], "props": {"n": 1}}
EDGE = {"source": "src:a", "rel": "KNOWS", "target": "src:b", "weight": 2.0}
LINES = "application/x-ndjson"


def send(client: APIClient, body: bytes | str, *, query: str = "", **headers: Any) -> Any:
    """POST lines."""
    data = body.encode() if isinstance(body, str) else body
    return client.generic("POST", f"{BULK}{query}", data, content_type=LINES, **headers)


def lines_of(*items: Any) -> str:
    kinds = ("node" if "id" in item else "edge" for item in items)
    return "\n".join(json.dumps({kind: item}) for kind, item in zip(kinds, items, strict=True))


def test_many_are_written_once_and_counted(client: APIClient) -> None:
    body = {"nodes": [NODE, {"id": "src:b"}, {**NODE, "name": "B"}], "edges": [EDGE, EDGE]}

    first = client.post(BULK, body)
    assert first.status_code == 200
    assert first.json() == {
        "nodes": {"created": 2, "updated": 0, "unchanged": 0},
        "edges": {"created": 1, "updated": 0, "unchanged": 0},
        "stubs": 0,
        "taken": [],
    }
    assert Node.objects.get(key="src:a").name == "B"

    again = client.post(BULK, body).json()
    assert again["nodes"] == {"created": 0, "updated": 0, "unchanged": 2}
    assert again["edges"] == {"created": 0, "updated": 0, "unchanged": 1}

    changed = {"nodes": [{"id": "src:a", "props": {"n": 2}}], "edges": [{**EDGE, "weight": 3}]}
    third = client.post(BULK, {**changed, "replace_props": True}).json()
    assert third["nodes"] == {"created": 0, "updated": 1, "unchanged": 0}
    assert third["edges"] == {"created": 0, "updated": 1, "unchanged": 0}
    assert (Node.objects.count(), Edge.objects.count()) == (2, 1)


def test_lines_are_the_same_as_one_object(client: APIClient) -> None:
    first = send(client, lines_of(EDGE, NODE, {"id": "src:b"}))
    assert first.status_code == 200
    assert first.json()["nodes"]["created"] == 2
    again = send(client, lines_of(EDGE, NODE) + "\n\n").json()
    assert (again["nodes"]["unchanged"], again["edges"]["unchanged"]) == (1, 1)


def test_ends_that_are_missing_are_refused_or_made(client: APIClient) -> None:
    refused = client.post(BULK, {"nodes": [NODE], "edges": [EDGE]})
    assert (refused.status_code, refused.json()["code"]) == (400, "missing_node")
    assert refused.json()["errors"][0]["attr"] == "edges.0"
    refused = send(client, lines_of(NODE, EDGE))
    assert (refused.status_code, refused.json()["code"]) == (400, "missing_node")
    assert refused.json()["detail"].startswith("Line 2: ")
    assert not Node.objects.exists()

    assert client.post(BULK, {"edges": [EDGE], "strict": False}).json()["stubs"] == 2
    other = lines_of({**EDGE, "target": "src:c"})
    assert send(client, other, query="?strict=false").json()["stubs"] == 1


def test_nothing_is_written_where_one_item_cannot_be(client: APIClient) -> None:
    for number, (body, attr) in enumerate(
        [
            ({"nodes": [NODE, {"id": ""}]}, "nodes.1.id"),
            ({"nodes": [NODE, {"name": "x"}]}, "nodes.1.id"),
            ({"nodes": [NODE, "src:b"]}, "nodes.1"),
            ({"nodes": [NODE, {"id": "b", "nmae": "x"}]}, "nodes.1"),
            ({"nodes": [NODE, {"id": "b", "name": 7}]}, "nodes.1.name"),
            ({"nodes": [NODE, {"id": "b", "labels": "Thing"}]}, "nodes.1.labels"),
            ({"nodes": [NODE, {"id": "b", "props": [1]}]}, "nodes.1.props"),
            ({"nodes": [NODE, {"id": "b", "props": {"x": "\0"}}]}, "nodes.1.props"),
            ({"nodes": [NODE, {"id": "a\0b"}]}, "nodes.1.id"),
            ({"nodes": [NODE], "edges": [{**EDGE, "weight": -1}]}, "edges.0.weight"),
            ({"nodes": [NODE], "edges": [{**EDGE, "weight": "1"}]}, "edges.0.weight"),
            ({"nodes": [NODE], "edges": [{**EDGE, "rel": ""}]}, "edges.0.rel"),
            ({"nodes": [NODE], "edges": [{**EDGE, "source": None}]}, "edges.0.source"),
            ({"nodes": [NODE], "edges": [{**EDGE, "target": {"id": "b"}}]}, "edges.0.target"),
            ({"nodes": {"id": "b"}}, "nodes"),
            ({"nodes": [NODE], "strict": "perhaps"}, "strict"),
            ({"nodes": [NODE], "relations": []}, "relations"),
        ]
    ):
        answer = client.post(BULK, body)
        assert answer.status_code == 400, number
        assert answer.json()["errors"][0]["attr"] == attr, number
        assert not Node.objects.exists()


@pytest.mark.parametrize(
    ("body", "told"),
    [
        (b'{"node": {"id": "a"}}\n{"node": {"id": "b"}', "Line 2: "),
        (b'{"node": {"id": "a"}}\n\nnode\n', "Line 3: "),
        (b'{"node": {"id": "a"}}\n{"node": {"id": " "}}', "Line 2: id: "),
        (b'{"edge": {"source": "a", "rel": "R"}}\n{"node": {"id": "a"}}', "Line 1: target: "),
        (b'{"node": {"id": "\\ud83d"}}', "Line 1: id: "),
    ],
)
def test_a_line_that_cannot_be_is_named(client: APIClient, body: bytes, told: str) -> None:
    answer = send(client, body)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(told)
    assert answer.json()["errors"][0]["attr"].startswith("line ")
    assert not Node.objects.exists()


def test_too_much_is_refused_before_it_is_read(client: APIClient, monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk, "MAX_BYTES", 1000)
    monkeypatch.setattr(bulk.BulkJSONParser, "max_bytes", 1000)
    for answer in (
        client.post(BULK, {"nodes": [{"id": "x" * 1000}]}),
        send(client, lines_of({"id": "x" * 1000})),
    ):
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_too_many_are_refused(client: APIClient) -> None:
    many = [{"id": "x"}] * (bulk.MAX_ITEMS + 1)
    for answer in (client.post(BULK, {"nodes": many}), send(client, lines_of(*many))):
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert not Node.objects.exists()


@pytest.mark.parametrize("kind", ["application/json", LINES])
def test_the_same_request_is_answered_the_same(client: APIClient, kind: str) -> None:
    body = json.dumps({"nodes": [NODE]}) if kind != LINES else lines_of(NODE)
    answers = [
        client.generic("POST", BULK, text.encode(), content_type=kind, HTTP_IDEMPOTENCY_KEY="one")
        for text in (body, body, body.replace("src:a", "src:z"))
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 422]
    assert answers[0].json() == answers[1].json()
    assert answers[1].headers["Idempotency-Replayed"] == "true"
    assert answers[0].json()["nodes"]["created"] == 1


def test_another_form_of_body_is_refused(client: APIClient) -> None:
    answer = client.generic("POST", BULK, b"id,name\n", content_type="text/csv")
    assert answer.status_code == 415
    answer = client.generic("POST", BULK, b"[]", content_type="application/json")
    assert answer.status_code == 400
    assert client.post(BULK, {}).json()["nodes"]["created"] == 0
