"""A site without memory, the graph or vectors: what refuses, what is hidden, and
that no worker does anything for it."""

from io import BytesIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from accounts.models import Membership
from common.features import SwitchedOff
from documents.ingestion import loader, pipeline
from documents.ingestion.space_choice import add_space
from documents.models import Chunk, Collection, Document
from documents.services import (
    export_collection,
    import_collection,
    reembed_collection,
    reembed_inline,
    reindex_collection,
    update_collection,
)
from documents.services.chunk_edits import edit_chunk
from documents.tasks import (
    embed_documents,
    ingest_documents,
    recover_documents,
    reindex_documents,
)
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.validation import validate
from graph.extraction import queue as graph_queue
from graph.models import Extraction, Mention
from graph.tasks import extract_documents
from inference.backends.hashing import HashingEmbedder
from memory import services, tasks
from memory.extraction.queue import QUEUE
from memory.models import Context, ExtractionItem
from memory.scopes import UserScope, account_id
from rag.context import RagContext
from rag.events import Failed
from rag.services.chat import chat
from rag.services.questions import Question
from rag.services.user_memory import recall
from rag.tools import call, tools_for
from ragsite import health
from search.query_options import scope_for
from search.similar import similar_documents
from search.stores import Store
from tests.kit import client_of, logged_in, queue_file, work_on

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


# --- vectors -------------------------------------------------------------------------------------


@pytest.fixture
def by_words(alice: Membership, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Collection:
    """A collection of a site without vectors, whose model fails when it is asked."""
    settings.VECTORS = False
    for name in ("embed_documents", "embed_query"):
        monkeypatch.setattr(HashingEmbedder, name, pytest.fail)
    return CollectionFactory(workspace=alice.workspace, slug="notes")


def ingested(collection: Collection, text: str = "The lighthouse keeper writes.") -> Document:
    """A text document, as the worker of the queue `ingest` reads it, without one that embeds."""
    document = queue_file(collection, "log.txt", text.encode(), policy="overwrite")
    sent: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(embed_documents, "delay", sent.append)
        ingest_documents([document.pk])
    assert sent == []
    document.refresh_from_db()
    return document


def test_documents_without_vectors_are_found_by_words_at_once(
    alice: Membership, by_words: Collection
) -> None:
    assert ingested(by_words).status == Document.Status.READY
    assert Chunk.objects.get().embedding is None
    for mode in ("hybrid", "lexical"):
        answer = client_of(alice).get(f"/api/v1/search/?q=lighthouse&mode={mode}").json()
        assert [hit["document"]["title"] for hit in answer["hits"]] == ["Log"]
        assert [arm["name"] for arm in answer["arms"]] == ["lexical"]
        said = "RAGSITE_VECTORS" in " ".join(answer["notes"])
        assert said == (mode == "hybrid")
        assert answer["degraded"] == []
    assert validate(collection_id=by_words.pk).findings == ()


def test_a_new_text_without_vectors_replaces_the_former(by_words: Collection) -> None:
    ingested(by_words, "The lighthouse keeper writes.")
    [before] = Chunk.objects.values_list("pk", flat=True)
    ingested(by_words, "The harbour master sleeps.")
    [after] = Chunk.objects.filter(is_current=True)
    assert (after.pk != before, after.text) == (True, "The harbour master sleeps.")


def test_what_needs_vectors_is_refused_without_them(
    alice: Membership, by_words: Collection
) -> None:
    ingested(by_words)
    api = client_of(alice)
    for asked in ("mode=vector", "min_similarity=0.5"):
        assert refusal(api.get(f"/api/v1/search/?q=ada&{asked}")) == (403, "switched_off"), asked
    for refused in (
        lambda: reembed_collection(collection=by_words),
        lambda: reembed_inline(target=by_words.space, collection=by_words),
        lambda: reindex_collection(collection=by_words, embed=True),
        lambda: Store(by_words).embed("lighthouse"),
    ):
        with pytest.raises(SwitchedOff, match="RAGSITE_VECTORS"):
            refused()


def test_items_edits_and_imports_need_no_model_without_vectors(
    alice: Membership, by_words: Collection
) -> None:
    store = Store(by_words, user=alice.user)
    store.index("keeper", "The lighthouse keeper writes.")
    edit_chunk(chunk=Chunk.objects.get(), text="The lighthouse keeper reads.", user=alice.user)
    assert Chunk.objects.get().embedding is None
    written = BytesIO()
    export_collection(collection=by_words, file=written, with_vectors=True)
    for expected in ("ready", "skipped"):
        written.seek(0)
        run = import_collection(workspace=alice.workspace, slug="copy", file=written)
        assert [item.state for item in run.items.all()] == [expected]


def test_memory_and_likeness_go_by_words_without_vectors(
    alice: Membership, by_words: Collection
) -> None:
    document = ingested(by_words)
    scope = UserScope(alice.workspace.pk, account_id(alice.user))
    services.archive_turn(scope=scope, user_message="I keep the lighthouse.")
    assert tasks.recover_memories() == 0
    found = services.search_memory(scope=scope, query="lighthouse")
    assert (len(found.hits), found.degraded) == (1, ())
    within = scope_for(user=alice.user, workspace=alice.workspace)
    assert similar_documents(document, scope=within) == ()
    answers = list(chat(Question("Who writes?", memory=False), context=context_of(alice)))
    assert not any(isinstance(event, Failed) for event in answers)


def test_pages_do_not_offer_meaning_without_vectors(
    alice: Membership, by_words: Collection
) -> None:
    ingested(by_words)
    client = logged_in(alice)
    found = client.get("/?q=lighthouse").content.decode()
    assert "mode=vector" not in found
    assert "Found by words only" in found
    assert "Search by words only" in client.get("/").content.decode()
    assert "by words only" in client.get("/documents/notes/").content.decode()


def test_what_has_no_vector_is_embedded_when_they_are_on_again(
    alice: Membership, settings: Any
) -> None:
    settings.VECTORS = False
    collection = CollectionFactory(workspace=alice.workspace)
    ingested(collection)
    settings.VECTORS = True
    assert [each.check.name for each in validate(collection_id=collection.pk).findings] == [
        "chunk_without_vector"
    ]
    call_command("reindex", "--missing")
    assert Chunk.objects.get().embedding is not None


def test_a_collection_without_vectors_is_found_by_words(alice: Membership) -> None:
    api = client_of(alice)
    for name in ("Kept", "Plain"):
        made = api.post("/api/v1/collections/", {"name": name, "graph": "off"}).json()
        assert made["vectors"] is True
    for collection in Collection.objects.filter(workspace=alice.workspace):
        document = DocumentFactory(collection=collection, title=collection.name)
        ChunkFactory(document=document, text=f"The lighthouse keeper of {collection.name}.")
    assert api.patch("/api/v1/collections/plain/", {"vectors": False}).json()["vectors"] is False
    assert not Chunk.objects.filter(embedding=None).exists()

    answer = api.get("/api/v1/search/?q=lighthouse").json()
    similarity = {hit["document"]["title"]: hit["scores"]["similarity"] for hit in answer["hits"]}
    assert similarity.keys() == {"Kept", "Plain"}
    assert similarity["Kept"] is not None
    assert similarity["Plain"] is None
    assert "their vectors are switched off: Plain." in " ".join(answer["notes"])
    assert len(api.get("/api/v1/search/?q=lighthouse&mode=vector").json()["hits"]) == 1
    alone = api.get("/api/v1/search/?q=lighthouse&mode=vector&collection=plain")
    assert refusal(alone) == (403, "switched_off")
    page = logged_in(alice).get("/documents/plain/").content.decode()
    assert "none, found by words only" in page


def test_a_collection_whose_vectors_are_on_again_is_embedded(
    alice: Membership, django_capture_on_commit_callbacks: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = CollectionFactory(
        workspace=alice.workspace, slug="notes", vectors=False, graph="off"
    )
    document = ingested(collection)
    ChunkFactory(document=DocumentFactory(collection=collection))
    assert Chunk.objects.filter(embedding=None).count() == 1
    assert validate(collection_id=collection.pk).findings == ()
    sent: list[Any] = []
    monkeypatch.setattr(reindex_documents, "delay", sent.append)
    with django_capture_on_commit_callbacks(execute=True):
        update_collection(collection=collection, vectors=True)
    assert sent == [[document.pk]]
    reindex_documents(sent[0])
    assert not Chunk.objects.filter(embedding=None).exists()


def test_documents_of_both_kinds_are_loaded_together(alice: Membership) -> None:
    documents = [
        queue_file(CollectionFactory(workspace=alice.workspace, vectors=has), "log.txt", b"Words.")
        for has in (False, True, False, True)
    ]
    work_on(*documents)
    assert {each.status for each in documents} == {Document.Status.READY}
    for chunk in Chunk.objects.select_related("collection"):
        assert (chunk.embedding is not None) == chunk.collection.vectors


def test_recovery_loads_what_needs_no_vectors_itself(
    alice: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = CollectionFactory(workspace=alice.workspace, vectors=False)
    document = queue_file(collection, "log.txt", b"Words.")
    pipeline.parse_documents([document.pk])
    Document.objects.update(claimed_by=None, claimed_until=None, updated_at="2020-01-01T00:00Z")
    for task in (embed_documents, ingest_documents):
        monkeypatch.setattr(task, "delay", pytest.fail)
    assert recover_documents() == 1
    document.refresh_from_db()
    assert document.status == Document.Status.READY


def test_a_document_is_embedded_if_vectors_are_switched_on_while_it_is_loaded(
    alice: Membership, monkeypatch: pytest.MonkeyPatch
) -> None:
    collection = CollectionFactory(workspace=alice.workspace, slug="notes", vectors=False)
    make_group = loader.make_group

    def switched_on(*args: Any) -> Any:
        group = make_group(*args)
        Collection.objects.update(vectors=True)
        return group

    monkeypatch.setattr(loader, "make_group", switched_on)
    ingested(collection)
    assert Chunk.objects.get().embedding is not None


@pytest.mark.django_db(transaction=True)
def test_a_site_moves_to_another_model_without_its_collections_without_vectors(
    alice: Membership,
) -> None:
    kept, plain = (
        CollectionFactory(workspace=alice.workspace, slug=slug, vectors=slug == "kept")
        for slug in ("kept", "plain")
    )
    for collection in (kept, plain):
        ChunkFactory(document=DocumentFactory(collection=collection), text="The lighthouse.")
    before = plain.space
    target, _ = add_space(name="other", embedder="default")
    with pytest.raises(SwitchedOff, match="“plain”"):
        reembed_inline(target=target, collection=plain)
    reembed_inline(target=target)
    for collection, space in ((kept, target), (plain, before)):
        collection.refresh_from_db()
        assert (collection.space, collection.former_spaces) == (space, [])
        assert Chunk.objects.get(collection=collection).space == space


def test_a_site_without_vectors_needs_no_model_and_no_worker_that_embeds(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health.presence, "live_workers", lambda client, queue: [])
    assert not health.check_queue("embed").ok
    settings.VECTORS = False
    assert health.check_queue("embed").ok
    assert not health.check_queue("ingest").ok
    assert health.check_models() == health.Outcome(ok=True, detail="vectors are switched off")


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
