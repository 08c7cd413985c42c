"""Edges over the API: listed, written, deleted."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from documents.models import Document
from graph.models import Edge, Node
from graph.tests.clients import EDGES, asked, put_edge, put_node

pytestmark = pytest.mark.django_db


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
