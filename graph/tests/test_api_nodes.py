"""Nodes over the API: listed, found, read, written, deleted."""

from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership
from documents.models import Document
from graph.models import Edge, Node
from graph.tests.clients import NODES, asked, ids, put_edge, put_node
from graph.tests.factories import make_node

pytestmark = pytest.mark.django_db
ADA = "ent:person:ada lovelace"


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
