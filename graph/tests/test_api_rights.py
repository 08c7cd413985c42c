"""Who may read and change a graph over the API, and what of it nobody else learns."""

from typing import Any

import pytest

from accounts.models import Membership, Role
from documents.tests.factories import CollectionFactory, MembershipFactory
from graph.tests.clients import GRAPH, NODES, asked, colleague
from graph.tests.factories import make_edge, make_node
from tests.kit import client_of

pytestmark = pytest.mark.django_db

PREVIEWS: list[tuple[str, str, Any]] = [
    ("post", f"{GRAPH}merge/", {"keep": "src:a", "others": ["src:b"], "dry_run": True}),
    ("delete", f"{NODES}?id=src:b&dry_run=true", None),
    ("post", f"{NODES}delete/", {"ids": ["src:b"], "dry_run": True}),
]


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
    api = client_of(colleague(alice, role=Role.VIEWER))
    for method, url, body in PREVIEWS:
        answer = getattr(api, method)(url, body)
        assert (answer.status_code, answer.json()["code"]) == (403, "permission_denied"), url


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
