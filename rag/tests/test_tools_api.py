"""Tools over HTTP, with a session and with API keys."""

import json
from typing import Any

import pytest
from rest_framework.test import APIClient

from accounts.models import Membership, Role
from accounts.tests.keys import client_of_key
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from memory.models import Fact
from rag.tools import TOOLS, required_scope
from tests.kit import client_of

pytestmark = pytest.mark.django_db

ADDRESS = "/api/v1/tools/"


@pytest.fixture
def alice() -> Membership:
    alice = MembershipFactory()
    notes = CollectionFactory(workspace=alice.workspace, slug="notes")
    ChunkFactory(document=DocumentFactory(collection=notes, key="log.md"), text="Oil burns.")
    return alice


def called(client: APIClient, name: str, arguments: Any) -> Any:
    answer = client.post(f"{ADDRESS}{name}/", {"arguments": arguments})
    assert answer.status_code == 200, answer.content
    return answer.json()


def test_every_tool_is_listed_with_its_schema(alice: Membership) -> None:
    listed = client_of(alice).get(ADDRESS).json()["tools"]
    assert [tool["name"] for tool in listed] == list(TOOLS)
    for tool in listed:
        own = TOOLS[tool["name"]]
        assert tool["parameters"] == json.loads(json.dumps(own.parameters))
        assert (tool["description"], tool["writes"]) == (own.description, own.writes)
        assert tool["scope"] == required_scope(own)
        assert tool["allowed"] is True


def test_what_one_may_not_use_is_marked(alice: Membership) -> None:
    viewer = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    for client in (client_of(viewer), client_of_key(alice, "read", "memory")):
        listed = client.get(ADDRESS).json()["tools"]
        refused = {tool["name"] for tool in listed if not tool["allowed"]}
        assert refused == {"index_document", "remove_document", "graph_upsert"}
    reading = client_of_key(alice, "read").get(ADDRESS).json()["tools"]
    assert {tool["scope"] for tool in reading if tool["allowed"]} == {"read"}


def test_a_tool_is_called(alice: Membership) -> None:
    answer = called(client_of(alice), "hybrid_query", {"query": "oil"})
    assert answer["is_error"] is False
    assert answer["text"].startswith("Found 1 relevant documents:\n\n--- Document 1 (score: ")
    as_text = called(client_of(alice), "hybrid_query", '{"query": "oil"}')
    assert as_text == answer
    without = client_of(alice).post(f"{ADDRESS}list_collections/", {})
    assert without.json()["text"].startswith("Found 1 collection(s)")


def test_wrong_arguments_are_an_answer(alice: Membership) -> None:
    for arguments in ([], "x", 7, None, {"k": "3", "query": "x"}, {"x": 1}):
        answer = called(client_of(alice), "hybrid_query", arguments)
        assert answer["is_error"] is True
        assert answer["text"].startswith("Error: ")


def test_an_unknown_tool_is_not_there(alice: Membership) -> None:
    answer = client_of(alice).post(f"{ADDRESS}drop_table/", {"arguments": {}})
    assert answer.status_code == 404
    assert "similarity_search" in answer.json()["detail"]


def test_a_tool_of_memory_keeps_what_the_keys_user_said(alice: Membership) -> None:
    client = client_of_key(alice, "memory")
    called(client, "set_fact", {"key": "city", "value": "Bergen"})
    assert Fact.objects.get().user_id == f"user:{alice.user.pk}"
    assert "Bergen" in called(client, "get_fact", {"key": "city"})["text"]
