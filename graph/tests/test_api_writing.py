"""Edges and bulk writes over the API."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from documents.models import Document
from graph.api import bulk
from graph.models import Edge, Node
from graph.tests.clients import BULK, EDGES, asked, put_edge, put_node

pytestmark = pytest.mark.django_db
NODE = {"id": "src:a", "name": "A", "labels": ["Thing"], "props": {"n": 1}}
EDGE = {"source": "src:a", "rel": "KNOWS", "target": "src:b", "weight": 2.0}
LINES = "application/x-ndjson"


def send(api: APIClient, body: bytes | str, *, query: str = "", **headers: Any) -> Any:
    """POST lines."""
    data = body.encode() if isinstance(body, str) else body
    return api.generic("POST", f"{BULK}{query}", data, content_type=LINES, **headers)


def lines_of(*items: Any) -> str:
    kinds = ("node" if "id" in item else "edge" for item in items)
    return "\n".join(json.dumps({kind: item}) for kind, item in zip(kinds, items, strict=True))


def test_many_are_written_once_and_counted(api: APIClient) -> None:
    body = {"nodes": [NODE, {"id": "src:b"}, {**NODE, "name": "B"}], "edges": [EDGE, EDGE]}

    first = api.post(BULK, body)
    assert first.status_code == 200
    assert first.json() == {
        "nodes": {"created": 2, "updated": 0, "unchanged": 0},
        "edges": {"created": 1, "updated": 0, "unchanged": 0},
        "stubs": 0,
        "taken": [],
    }
    assert Node.objects.get(key="src:a").name == "B"

    again = api.post(BULK, body).json()
    assert again["nodes"] == {"created": 0, "updated": 0, "unchanged": 2}
    assert again["edges"] == {"created": 0, "updated": 0, "unchanged": 1}

    changed = {"nodes": [{"id": "src:a", "props": {"n": 2}}], "edges": [{**EDGE, "weight": 3}]}
    third = api.post(BULK, {**changed, "replace_props": True}).json()
    assert third["nodes"] == {"created": 0, "updated": 1, "unchanged": 0}
    assert third["edges"] == {"created": 0, "updated": 1, "unchanged": 0}
    assert (Node.objects.count(), Edge.objects.count()) == (2, 1)


def test_lines_are_the_same_as_one_object(api: APIClient) -> None:
    first = send(api, lines_of(EDGE, NODE, {"id": "src:b"}))
    assert first.status_code == 200
    assert first.json()["nodes"]["created"] == 2
    again = send(api, lines_of(EDGE, NODE) + "\n\n").json()
    assert (again["nodes"]["unchanged"], again["edges"]["unchanged"]) == (1, 1)


def test_ends_that_are_missing_are_refused_or_made(api: APIClient) -> None:
    refused = api.post(BULK, {"nodes": [NODE], "edges": [EDGE]})
    assert (refused.status_code, refused.json()["code"]) == (400, "missing_node")
    assert refused.json()["errors"][0]["attr"] == "edges.0"
    refused = send(api, lines_of(NODE, EDGE))
    assert (refused.status_code, refused.json()["code"]) == (400, "missing_node")
    assert refused.json()["detail"].startswith("Line 2: ")
    assert not Node.objects.exists()

    assert api.post(BULK, {"edges": [EDGE], "strict": False}).json()["stubs"] == 2
    other = lines_of({**EDGE, "target": "src:c"})
    assert send(api, other, query="?strict=false").json()["stubs"] == 1


def test_nothing_is_written_where_one_item_cannot_be(api: APIClient) -> None:
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
        answer = api.post(BULK, body)
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
def test_a_line_that_cannot_be_is_named(api: APIClient, body: bytes, told: str) -> None:
    answer = send(api, body)
    assert answer.status_code == 400
    assert answer.json()["detail"].startswith(told)
    assert answer.json()["errors"][0]["attr"].startswith("line ")
    assert not Node.objects.exists()


def test_too_much_is_refused_before_it_is_read(api: APIClient, monkeypatch: Any) -> None:
    monkeypatch.setattr(bulk, "MAX_BYTES", 1000)
    monkeypatch.setattr(bulk.BulkJSONParser, "max_bytes", 1000)
    for answer in (
        api.post(BULK, {"nodes": [{"id": "x" * 1000}]}),
        send(api, lines_of({"id": "x" * 1000})),
    ):
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")


def test_too_many_are_refused(api: APIClient) -> None:
    many = [{"id": "x"}] * (bulk.MAX_ITEMS + 1)
    for answer in (api.post(BULK, {"nodes": many}), send(api, lines_of(*many))):
        assert (answer.status_code, answer.json()["code"]) == (413, "too_large")
    assert not Node.objects.exists()


def test_another_form_of_body_is_refused(api: APIClient) -> None:
    answer = api.generic("POST", BULK, b"id,name\n", content_type="text/csv")
    assert answer.status_code == 415
    answer = api.generic("POST", BULK, b"[]", content_type="application/json")
    assert answer.status_code == 400
    assert api.post(BULK, {}).json()["nodes"]["created"] == 0


def triples(page: Any) -> list[tuple[str, str, str]]:
    return [(edge["source"], edge["rel"], edge["target"]) for edge in page["results"]]


def test_an_edge_is_made_changed_and_left_alone(api: APIClient) -> None:
    made = put_edge(api, "src:a", "KNOWS", "src:b", weight=0.5, props={"since": 1843})
    assert made.status_code == 201
    edge = {
        "source": "src:a",
        "rel": "KNOWS",
        "target": "src:b",
        "weight": 0.5,
        "origin": "given",
        "props": {"since": 1843},
    }
    assert made.json() == {"edge": edge, "created": True, "changed": True, "stubs": 2}

    again = put_edge(api, "src:a", "KNOWS", "src:b", weight=0.5, props={"since": 1843})
    assert (again.status_code, again.json()["changed"]) == (200, False)
    changed = put_edge(api, "src:a", "KNOWS", "src:b", props={"until": 1852}).json()["edge"]
    assert changed == {**edge, "props": {"since": 1843, "until": 1852}}
    replaced = put_edge(api, "src:a", "KNOWS", "src:b", props={}, replace_props=True).json()
    assert replaced["edge"]["props"] == {}
    assert Edge.objects.count() == 1


def test_a_missing_end_is_refused_unless_it_may_be_made(api: APIClient) -> None:
    put_node(api, "src:a")
    refused = api.put(EDGES, {"source": "src:a", "rel": "KNOWS", "target": "src:b"})
    assert (refused.status_code, refused.json()["code"]) == (400, "missing_node")
    assert "src:b" in refused.json()["detail"]
    assert refused.json()["errors"][0]["attr"] == "target"
    assert Node.objects.count() == 1
    assert put_edge(api, "src:a", "KNOWS", "src:b").json()["stubs"] == 1


def test_edges_are_listed_by_their_parts(api: APIClient) -> None:
    for source, rel, target in (
        ("src:a", "KNOWS", "src:b"),
        ("src:a", "OWNS", "src:c"),
        ("src:b", "KNOWS", "src:c"),
    ):
        put_edge(api, source, rel, target, props={"x": 1})

    assert triples(asked(api, "edges", source="src:a")) == [
        ("src:a", "OWNS", "src:c"),
        ("src:a", "KNOWS", "src:b"),
    ]
    assert len(asked(api, "edges", rel="KNOWS")["results"]) == 2
    assert len(asked(api, "edges", target="src:c")["results"]) == 2
    assert triples(asked(api, "edges", target="src:c", rel="KNOWS")) == [
        ("src:b", "KNOWS", "src:c")
    ]
    assert asked(api, "edges", source="src:nothing")["results"] == []
    assert asked(api, "edges", rel="src:a")["results"] == []
    first = asked(api, "edges", page_size=2)
    assert len(first["results"]) == 2
    assert triples(api.get(first["next"]).json()) == [("src:a", "KNOWS", "src:b")]
    assert first["results"][0]["props"] is None
    (one,) = asked(api, "edges", source="src:a", rel="OWNS", target="src:c")["results"]
    assert one["props"] == {"x": 1}


def test_ends_that_are_documents_have_the_ids_of_documents(note: Document, api: APIClient) -> None:
    made = put_edge(api, "doc:notes:a.md", "ABOUT", "chunk:notes:a.md:0")
    assert made.json()["edge"]["source"] == "doc:notes:a.md"

    for asks in ({}, {"source": "doc:notes:a.md"}, {"target": "chunk:notes:a.md:0"}):
        assert triples(asked(api, "edges", **asks)) == [
            ("doc:notes:a.md", "ABOUT", "chunk:notes:a.md:0")
        ]


def test_an_edge_is_deleted_once(api: APIClient) -> None:
    for id in ("src:a", "src:b"):
        put_node(api, id, name=id)
    put_edge(api, "src:a", "KNOWS", "src:b")
    url = f"{EDGES}?source=src:a&rel=KNOWS&target=src:b"
    assert [api.delete(url).status_code for _ in range(2)] == [204, 404]
    assert Node.objects.count() == 2
