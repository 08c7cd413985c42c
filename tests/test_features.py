"""A site without memory or without the graph: what refuses, what is hidden, and
that no worker does anything for it."""

from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Membership
from common.features import SwitchedOff
from documents.models import Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.extraction import queue as graph_queue
from graph.models import Extraction, Mention
from graph.tasks import extract_documents
from memory import services, tasks
from memory.extraction.queue import QUEUE
from memory.models import Context, ExtractionItem
from memory.scopes import UserScope, account_id
from rag.context import RagContext
from rag.services.answers import Question, recall
from rag.services.chat import chat
from rag.tools import call, tools_for
from tests.kit import client_of, logged_in

pytestmark = pytest.mark.django_db

SAID = [{"role": "user", "content": "My name is Ada. I like tea."}]


def context_of(member: Membership) -> RagContext:
    return RagContext(user=member.user, workspace=member.workspace)


def refusal(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["code"]


# --- memory --------------------------------------------------------------------------------------


@pytest.fixture
def memory_off(settings: Any) -> None:
    settings.MEMORY = False


@pytest.fixture
def remembered(alice: Membership) -> UserScope:
    """Alice's memory: a turn, a fact and a conversation that nobody has read yet."""
    scope = UserScope(alice.workspace.pk, account_id(alice.user))
    services.archive_turn(scope=scope, user_message="I live in Basel.")
    services.set_fact(scope=scope, key="city", value="Basel")
    services.record_messages(scope=scope, conversation="c", messages=SAID)
    ExtractionItem.objects.update(due_at="2020-01-01T00:00Z")
    return scope


def test_pages_and_api_of_a_memory_that_is_off_refuse(alice: Membership, memory_off: None) -> None:
    page = logged_in(alice).get("/memory/")
    assert page.status_code == 403
    assert "Memory is switched off on this site" in page.content.decode()
    api = client_of(alice)
    for url in ("contexts/", "facts/", "search/?q=tea", "usage/", "conversations/"):
        assert refusal(api.get(f"/api/v1/memory/{url}")) == (403, "switched_off"), url
    answer = api.put("/api/v1/memory/facts/city/", {"value": "Basel"})
    assert refusal(answer) == (403, "switched_off")


def test_no_menu_leads_to_a_memory_that_is_off(alice: Membership, settings: Any) -> None:
    client = logged_in(alice)
    memory = ('href="/memory/"', 'name="memory"')
    assert all(each in client.get("/chat/").content.decode() for each in memory)
    settings.MEMORY = False
    assert not any(each in client.get("/chat/").content.decode() for each in memory)


def test_nothing_is_remembered_or_recalled_while_memory_is_off(
    alice: Membership, remembered: UserScope, settings: Any
) -> None:
    context = context_of(alice)
    assert recall("Where do I live?", context=context) is not None
    settings.MEMORY = False
    assert recall("Where do I live?", context=context) is None
    list(chat(Question("I live in Bern."), context=context))
    for write in (
        lambda: services.archive_turn(scope=remembered, user_message="tea"),
        lambda: services.set_fact(scope=remembered, key="city", value="Bern"),
        lambda: services.record_messages(scope=remembered, conversation="d", messages=SAID),
    ):
        with pytest.raises(SwitchedOff, match="RAGSITE_MEMORY"):
            write()
    assert Context.objects.count() == 1
    with pytest.raises(SwitchedOff):
        list(chat(Question("Where do I live?", memory=True), context=context))


def test_what_was_remembered_before_can_be_exported_and_erased(
    remembered: UserScope, memory_off: None
) -> None:
    assert b"Basel" in b"".join(services.export_memory(scope=remembered))
    services.erase_memory(scope=remembered)
    assert not Context.objects.exists()


def test_workers_leave_a_memory_that_is_off_alone(remembered: UserScope, settings: Any) -> None:
    [item] = ExtractionItem.objects.all()
    settings.MEMORY = False
    assert tasks.recover_extractions() == 0
    assert tasks.extract(item.pk) is False
    assert tasks.recover_memories() == 0
    assert not Context.objects.exclude(embedding=None).exists()
    settings.MEMORY = True
    assert QUEUE.claimable().filter(pk=item.pk).exists()
    assert tasks.extract(item.pk) is True


# --- graph ---------------------------------------------------------------------------------------


@pytest.fixture
def named(alice: Membership) -> Document:
    """A document that waits to be read for the graph."""
    collection = CollectionFactory(workspace=alice.workspace, slug="notes")
    document = DocumentFactory(collection=collection, key="ada.md")
    ChunkFactory(document=document, text="Ada Lovelace met Charles Babbage in London.")
    Extraction.objects.create(
        workspace=alice.workspace,
        collection=collection,
        document=document,
        due_at=document.created_at,
    )
    return document


def test_pages_and_api_of_a_graph_that_is_off_refuse(alice: Membership, settings: Any) -> None:
    settings.GRAPH = False
    page = logged_in(alice).get("/graph/")
    assert page.status_code == 403
    assert "The graph is switched off on this site" in page.content.decode()
    api = client_of(alice)
    for url in ("stats/", "edges/", "nodes/?id=src:a", "extractions/?collection=notes"):
        assert refusal(api.get(f"/api/v1/graph/{url}")) == (403, "switched_off"), url
    assert refusal(api.post("/api/v1/graph/bulk/", {"nodes": []})) == (403, "switched_off")
    with pytest.raises(CommandError, match="RAGSITE_GRAPH"):
        call_command("graph", "extract", workspace=alice.workspace.slug)


def test_no_page_leads_to_a_graph_that_is_off(
    alice: Membership, named: Document, settings: Any
) -> None:
    client = logged_in(alice)
    pages = {
        "/": 'href="/graph/"',
        "/?q=lovelace": "/graph/?id=doc:",
        "/?q=ada": "mode=graph",
        f"/documents/notes/{named.pk}/": 'id="graph"',
        "/documents/notes/change/": 'name="graph"',
    }
    for url, link in pages.items():
        assert link in client.get(url).content.decode(), url
    settings.GRAPH = False
    for url, link in pages.items():
        assert link not in client.get(url).content.decode(), url


def test_a_search_along_a_graph_that_is_off_is_refused(alice: Membership, settings: Any) -> None:
    settings.GRAPH = False
    api = client_of(alice)
    for asked in ("mode=graph", "expand=graph"):
        assert refusal(api.get(f"/api/v1/search/?q=ada&{asked}")) == (403, "switched_off"), asked


def test_documents_wait_while_the_graph_is_off(named: Document, settings: Any) -> None:
    settings.GRAPH = False
    assert graph_queue.sweep_due() == []
    assert extract_documents([named.pk]) == 0
    assert not Mention.objects.exists()
    settings.GRAPH = True
    assert extract_documents([named.pk]) == 1
    assert Mention.objects.exists()


# --- tools ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("feature", "tool", "arguments"),
    [("memory", "memory_search", {"query": "tea"}), ("graph", "graph_find", {"text": "Ada"})],
)
def test_a_model_is_offered_no_tools_of_what_is_off(
    alice: Membership, settings: Any, feature: str, tool: str, arguments: dict[str, Any]
) -> None:
    context = context_of(alice)
    assert feature in {each.family for each in tools_for(context)}
    setattr(settings, feature.upper(), False)
    assert feature not in {each.family for each in tools_for(context)}
    answer = call(tool, arguments, context=context)
    assert answer.is_error
    assert "switched off on this site" in answer.text
