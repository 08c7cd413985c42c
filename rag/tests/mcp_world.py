"""Who and what the tests of the Model Context Protocol meet, and how they come to it."""

import re
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import anyio
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from accounts.models import Membership, Role
from accounts.tests.keys import make_key
from documents.ingestion.items import Item
from documents.models import Collection
from documents.services import store_items
from documents.tests.factories import CollectionFactory, MembershipFactory, WorkspaceFactory
from rag.tests.conftest import ROOT, commit

T = TypeVar("T")

#: A key with everything that an address could stumble over.
ODD_KEY = "rules/50% off? #1 & “naïve” +sign\\..\\x.md"
VACATION = "Employees may carry over ten days of unused vacation into the next year."
LONG = "\n\n".join(f"Paragraph {number} tells of the archive of Hamburg." for number in range(6000))

#: What each tool is asked, in this order: later ones find what earlier ones wrote.
GOOD: dict[str, tuple[dict[str, Any], str]] = {
    "similarity_search": ({"query": "unused vacation days", "k": 2}, "vacation"),
    "hybrid_query": ({"query": "carry over vacation", "collection": "handbook"}, VACATION),
    "search_words": ({"query": "unused vacation", "k": 1}, VACATION),
    "search_vector": ({"vector": [1.0] * 384, "k": 1}, "Found 1 relevant"),
    "get_document": ({"id": "vacation.md"}, VACATION),
    "index_document": (
        {"id": "lunch.md", "content": "Lunch is at noon.", "collection": "handbook"},
        "Indexed",
    ),
    "remove_document": ({"id": "lunch.md", "collection": "handbook"}, "Removed"),
    "list_collections": ({}, "handbook"),
    "list_tables": ({}, "table"),
    "summarize_document": ({"id": "vacation.md"}, VACATION),
    "query_tables": ({"question": "How many bikes are there?"}, "Nothing was computed"),
    "archive_turn": ({"user_message": "I live in Kiel."}, "Archived"),
    "memory_search": ({"query": "Kiel"}, "I live in Kiel."),
    "remember": ({"question": "Where is the key?", "answer": "Under the mat."}, "Stored"),
    "clear_memory": ({"question": "Where is the key?"}, "Forgot 1"),
    "set_fact": ({"key": "city", "value": "Kiel"}, "Fact set: city"),
    "get_fact": ({"key": "city"}, "Kiel"),
    "has_fact": ({"key": "city"}, "Fact found"),
    "get_all_facts": ({}, "city"),
    "history": ({"key": "city"}, "Kiel"),
    "clear_fact": ({"key": "city"}, "Fact cleared"),
    "graph_upsert": (
        {
            "nodes": [{"id": "n:ada", "name": "Ada"}, {"id": "n:byron", "name": "Byron"}],
            "edges": [{"source": "n:ada", "rel": "CHILD_OF", "target": "n:byron"}],
        },
        "2",
    ),
    "graph_find": ({"text": "Ada"}, "n:ada"),
    "graph_neighbors": ({"id": "n:ada"}, "n:byron"),
    "graph_path": ({"source": "n:ada", "target": "n:byron"}, "CHILD_OF"),
}


HOW_TO = ROOT / "docs" / "how-to" / "connect-an-mcp-client.md"


def blocks_of_how_to(language: str) -> list[str]:
    """The examples of the page that tells how to connect."""
    return re.findall(rf"```{language}\n(.*?)```", HOW_TO.read_text(), flags=re.DOTALL)


@dataclass(frozen=True)
class World:
    """Alice owns a workspace, Bob may read there, Charlie belongs to another."""

    alice: Membership
    bob: Membership
    charlie: Membership
    handbook: Collection


def make_world() -> World:
    """Committed where the caller commits."""
    alice = MembershipFactory(workspace=WorkspaceFactory())
    bob = MembershipFactory(workspace=alice.workspace, role=Role.VIEWER)
    charlie = MembershipFactory()
    handbook = CollectionFactory(workspace=alice.workspace, slug="handbook", name="Handbook")
    store_items(
        collection=handbook,
        items=[
            Item("vacation.md", VACATION, title="Vacation", metadata={"year": 2026}),
            Item(ODD_KEY, "Odd keys are read like any other."),
            Item("long.txt", LONG),
        ],
        user=alice.user,
    )
    secret = CollectionFactory(workspace=charlie.workspace, slug="secrets")
    store_items(collection=secret, items=[Item("plan.md", "Charlie’s plan is a secret.")])
    return World(alice, bob, charlie, handbook)


def secret_of(member: Membership, *scopes: str) -> str:
    """Of a new key, committed; without `scopes` it has all."""
    return commit(lambda: make_key(member, *scopes)[1])


@asynccontextmanager
async def over_http(url: str, secret: str, *, mode: str = "auto") -> AsyncIterator[Client]:
    """The SDK's client with a key."""
    headers = {"Authorization": f"Bearer {secret}"} if secret else {}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=60) as http,
        Client(streamable_http_client(f"{url}/mcp", http_client=http), mode=mode) as client,
    ):
        yield client


def with_client(url: str, secret: str, use: Callable[[Client], Awaitable[T]], **how: Any) -> T:
    """What `use(client)` gives."""

    async def run() -> T:
        async with over_http(url, secret, **how) as client:
            return await use(client)

    return anyio.run(run)


def text_of(result: Any) -> str:
    """What a tool said."""
    (content,) = result.content
    return str(content.text)
