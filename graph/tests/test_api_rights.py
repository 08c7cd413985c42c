"""Who may read and change a graph over the API, and what of it nobody else learns."""

from typing import Any
from urllib.parse import urlencode

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from graph.models import Node
from graph.tests.clients import EDGES, GRAPH, NODES, asked, colleague, ids
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node
from tests.kit import client_of

pytestmark = pytest.mark.django_db

READS: list[tuple[str, str, Any]] = [
    ("get", f"{NODES}?id=src:a", None),
    ("get", NODES, None),
    ("get", f"{NODES}?q=src", None),
    ("get", EDGES, None),
    ("get", f"{GRAPH}neighbors/?id=src:a", None),
    ("get", f"{GRAPH}mentions/?id=src:a", None),
    ("get", f"{GRAPH}traverse/?start=src:a", None),
    ("post", f"{GRAPH}traverse/", {"start": "src:a"}),
    ("get", f"{GRAPH}paths/?source=src:a&target=src:b", None),
    ("post", f"{GRAPH}paths/", {"source": "src:a", "target": "src:b"}),
    ("get", f"{GRAPH}subgraph/?id=src:a", None),
    ("get", f"{GRAPH}subgraph/?id=src:a&format=graphml", None),
    ("post", f"{GRAPH}subgraph/", {"id": ["src:a"]}),
    ("get", f"{GRAPH}stats/", None),
    ("get", f"{GRAPH}export/", None),
    ("get", f"{GRAPH}export/?format=jsonl", None),
    ("get", f"{GRAPH}extractions/?collection=notes", None),
]
PREVIEWS: list[tuple[str, str, Any]] = [
    ("post", f"{GRAPH}merge/", {"keep": "src:a", "others": ["src:b"], "preview": True}),
    ("delete", f"{NODES}?id=src:b&preview=true", None),
    ("post", f"{NODES}delete/", {"ids": ["src:b"], "preview": True}),
]


def ask(api: APIClient, requests: Any, **parameters: str) -> dict[str, Any]:
    """What each address answers."""
    answers = {}
    for method, url, body in requests:
        joined = f"{url}{'&' if '?' in url else '?'}{urlencode(parameters)}"
        answers[f"{method} {url}"] = getattr(api, method)(joined, body)
    return answers


def statuses(answers: dict[str, Any]) -> set[int]:
    return {answer.status_code for answer in answers.values()}


def text_of(answer: Any) -> str:
    content = b"".join(answer.streaming_content) if answer.streaming else answer.content
    return str(content.decode())


@pytest.fixture
def alice() -> Membership:
    """An owner, whose workspace has a collection and two nodes that know each other."""
    member = MembershipFactory()
    CollectionFactory(workspace=member.workspace, slug="notes")
    one, two = (
        make_node(f"src:{name}", workspace=member.workspace, name=f"Given {name}") for name in "ab"
    )
    make_edge(one, "KNOWS", two)
    return member


def test_viewers_preview_no_change(alice: Membership) -> None:
    refused = ask(client_of(colleague(alice, role=Role.VIEWER)), PREVIEWS)
    assert statuses(refused) == {403}
    assert {answer.json()["code"] for answer in refused.values()} == {"permission_denied"}


def test_a_graph_is_of_one_workspace(alice: Membership) -> None:
    elsewhere = MembershipFactory(user=alice.user)
    api, there = client_of(alice), elsewhere.workspace.slug
    assert api.put(f"{NODES}?workspace={there}", {"id": "src:a", "name": "Other"}).json()["created"]
    assert asked(api, "nodes", id="src:a")["name"] == "Given a"
    assert asked(api, "nodes", id="src:a", workspace=there)["name"] == "Other"
    assert asked(api, "neighbors", id="src:a", workspace=there)["total"] == 0
    assert asked(api, "edges", workspace=there)["results"] == []
    assert asked(api, "stats", workspace=there)["nodes"] == 1
    assert api.get(f"{NODES}?id=src:b&workspace={there}").status_code == 404


@pytest.fixture
def secret(alice: Membership) -> Node:
    """A node that only a document tells of which Alice alone may read. It has an edge to another
    such node, and the document mentions what she gave."""
    collection = CollectionFactory(workspace=alice.workspace, slug="secret")
    document = DocumentFactory(
        collection=collection,
        key="plan.md",
        title="Secret plan",
        access=[f"user:{alice.user.pk}"],
    )
    chunk = ChunkFactory(document=document, text="A secret of the spy.")
    spy = make_extracted("ent:name:secret spy", chunk, name="Secret spy", labels=["Secret"])
    town = make_extracted("ent:name:secret town", chunk, name="Secret town")
    make_evidence(chunk, make_edge(spy, "SECRETLY_IN", town, origin="extracted"))
    make_mention(chunk, Node.objects.get(key="src:a"))
    return spy


def test_nothing_tells_of_documents_that_one_may_not_read(alice: Membership, secret: Node) -> None:
    bob = client_of(colleague(alice, role=Role.EDITOR))
    for label, answer in ask(bob, READS).items():
        assert answer.status_code == 200, label
        assert "ecret" not in text_of(answer), label
    told = [text_of(answer) for answer in ask(client_of(alice), READS).values()]
    assert sum("ecret" in text for text in told) > 8

    for address, parameters in {
        "nodes": {"id": secret.key},
        "neighbors": {"id": secret.key},
        "mentions": {"id": secret.key},
        "traverse": {"start": secret.key},
        "paths": {"source": secret.key, "target": "src:a"},
        "subgraph": {"id": secret.key},
    }.items():
        answer = bob.get(f"{GRAPH}{address}/", parameters)
        assert answer.status_code == 404, address
        assert client_of(alice).get(f"{GRAPH}{address}/", parameters).status_code == 200
    assert bob.delete(f"{NODES}?id={secret.key}").status_code == 404
    merged = bob.post(f"{GRAPH}merge/", {"keep": "src:a", "others": [secret.key]})
    assert merged.status_code == 404
    assert Node.objects.filter(pk=secret.pk).exists()


def test_counts_do_not_tell_of_them_either(alice: Membership, secret: Node) -> None:
    bob = client_of(colleague(alice, role=Role.EDITOR))
    mine, his = asked(client_of(alice), "stats"), asked(bob, "stats")
    assert (mine["nodes"], his["nodes"]) == (4, 2)
    assert (mine["edges"], his["edges"]) == (2, 1)
    assert asked(bob, "neighbors", id="src:a")["total"] == 1
    gone = bob.delete(f"{NODES}?id=src:a&preview=true").json()
    assert (gone["edges"], gone["mentions"]) == (1, 0)
    assert ids(asked(bob, "nodes", label="Secret")["results"]) == []


def test_what_one_may_not_see_begins_anew_when_it_is_written(
    alice: Membership, secret: Node
) -> None:
    bob = client_of(colleague(alice, role=Role.EDITOR))
    made = bob.put(NODES, {"id": secret.key, "props": {"x": 1}})
    assert made.status_code == 201
    assert made.json()["node"]["labels"] == []
    assert "Secret spy" not in text_of(made)
    assert asked(bob, "neighbors", id=secret.key)["total"] == 0
