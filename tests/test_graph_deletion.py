"""After a deletion the graph holds nothing that only the deleted text told, and all the rest."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.urls import reverse

from accounts.models import Workspace
from documents import services
from documents.ingestion.sources import text_source
from documents.models import Collection, Document
from documents.services import ingest_inline
from documents.tests.factories import CollectionFactory, MembershipFactory, WorkspaceFactory
from graph.models import Alias, Edge, Evidence, Extraction, Mention, Node
from graph.scopes import GraphScope
from graph.services import merge_nodes, neighbors, upsert_edge, upsert_node
from graph.services.extraction import extract_waiting, reextract_collection
from graph.tests.factories_extraction import found, passage_of, use_chat
from inference.tests.stub_server import Reply, stub_server
from tests.test_deletion import places_with_words

pytestmark = pytest.mark.django_db

#: Both tell of Ada Lovelace; of Wombattitle and the Zanzibarite Engine only the first does.
OWN = "Ada Lovelace met Lady Wombattitle. Ada Lovelace built the Zanzibarite Engine in London."
OTHER = "Ada Lovelace lived in London. Charles Babbage wrote to Ada Lovelace."
MODELS = (Node, Alias, Mention, Edge, Evidence)


@pytest.fixture
def workspace(media_root: Path) -> Workspace:
    return WorkspaceFactory()


@pytest.fixture
def collection(workspace: Workspace) -> Collection:
    """Read by rules."""
    return CollectionFactory(workspace=workspace)


@pytest.fixture
def by_model(workspace: Workspace, settings: Any) -> Any:
    """Read by a chat model, which tells of relations."""
    with stub_server() as server:
        server.always(told)
        use_chat(settings, server.url)
        yield CollectionFactory(workspace=workspace, graph="llm")


def told(payload: Any) -> Reply:
    """What a model finds in these texts."""
    text = passage_of(payload)
    shared = "Ada Lovelace", "lived in", "London", "Ada Lovelace lived in London."
    met = "Ada Lovelace", "met", "Lady Wombattitle", "Ada Lovelace met Lady Wombattitle."
    stated = [each for each in (shared, met) if each[3] in text]
    names = ("Ada Lovelace", "London", "Lady Wombattitle", "Zanzibarite Engine", "Charles Babbage")
    return found(*(name for name in names if name in text), relations=stated)


def bring(collection: Collection, key: str, text: str) -> Document:
    """Ingest and read it."""
    ingest_inline(collection=collection, sources=[text_source(key, text)])
    extract_waiting(collection=collection)
    document = Document.objects.get(collection=collection, key=key, is_current=True)
    assert Extraction.objects.get(document=document).state == "done"
    return document


def names() -> set[str]:
    return {str(node.name).lower() for node in Node.objects.all()}


def everything() -> dict[str, list[Any]]:
    """All that the graph holds, to the last column and row number, without times."""
    return {
        model.__name__: sorted(
            tuple(str(getattr(row, field.attname)) for field in model._meta.concrete_fields)
            for row in model.objects.defer(*({"updated_at"} & {f.name for f in model._meta.fields}))
        )
        for model in MODELS
    }


def test_the_search_for_words_finds_them_in_the_graph(
    collection: Collection, media_root: Path
) -> None:
    """What the other tests rest on."""
    bring(collection, "quokkasname.txt", OWN)
    assert {"graph_node", "graph_alias"} <= places_with_words(media_root)
    assert {"zanzibarite engine", "lady wombattitle", "ada lovelace"} <= names()


def test_what_only_a_deleted_document_told_goes_and_what_another_tells_stays(
    collection: Collection, media_root: Path
) -> None:
    bring(collection, "other.txt", OTHER)
    before = everything()
    own = bring(collection, "quokkasname.txt", OWN)
    assert everything() != before

    services.delete_document(document=own)

    assert places_with_words(media_root) == set()
    assert everything() == before
    assert "ada lovelace" in names()


def test_the_last_document_takes_everything_that_was_found(
    collection: Collection, media_root: Path
) -> None:
    for key, text in (("quokkasname.txt", OWN), ("other.txt", OTHER)):
        bring(collection, key, text)
    for document in Document.objects.all():
        services.delete_document(document=document)
    assert places_with_words(media_root) == set()
    assert not any(model.objects.exists() for model in (*MODELS, Extraction))


def test_relations_go_with_the_sentences_that_state_them(
    by_model: Collection, media_root: Path
) -> None:
    bring(by_model, "other.txt", OTHER)
    before = everything()
    own = bring(by_model, "quokkasname.txt", OWN)
    assert set(Edge.objects.values_list("rel", flat=True)) == {"LIVED_IN", "MET"}

    services.delete_document(document=own)

    assert places_with_words(media_root) == set()
    assert everything() == before
    assert Edge.objects.get().rel == "LIVED_IN"


def test_what_was_given_stays_when_the_document_goes(
    by_model: Collection, workspace: Workspace, media_root: Path
) -> None:
    scope = GraphScope(workspace.pk)
    upsert_node(scope=scope, id="src:crm:1", name="Charles Babbage", aliases=["Mr Babbage"])
    own = bring(by_model, "quokkasname.txt", f"{OWN} Charles Babbage saw it.")
    given = Node.objects.get(key="src:crm:1")
    assert given.mentions.exists()
    upsert_edge(scope=scope, source="src:crm:1", rel="IS", target="src:crm:2", strict=False)

    services.delete_document(document=own)

    assert places_with_words(media_root) == set()
    assert set(Node.objects.values_list("key", flat=True)) == {"src:crm:1", "src:crm:2"}
    assert set(Alias.objects.values_list("form", "node")) == {
        ("charles babbage", given.pk),
        ("mr babbage", given.pk),
    }
    assert Edge.objects.get().rel == "IS"
    assert not Mention.objects.exists()


def test_a_node_of_a_document_goes_with_it_and_its_edges_too(
    collection: Collection, workspace: Workspace, media_root: Path
) -> None:
    scope = GraphScope(workspace.pk)
    own = bring(collection, "quokkasname.txt", OWN)
    document_id = f"doc:{collection.slug}:quokkasname.txt"
    for source in (document_id, f"chunk:{collection.slug}:quokkasname.txt:0"):
        upsert_edge(scope=scope, source=source, rel="ABOUT", target="topic", strict=False)
    upsert_node(scope=scope, id=document_id, labels=["Zanzibarite"])

    services.delete_document(document=own)

    assert places_with_words(media_root) == set()
    assert not Edge.objects.exists()


def test_names_of_merged_nodes_go_with_the_one_that_was_kept(
    collection: Collection, workspace: Workspace, media_root: Path
) -> None:
    own = bring(collection, "quokkasname.txt", OWN)
    keys = {node.name.lower(): node.key for node in Node.objects.all()}
    merge_nodes(
        scope=GraphScope(workspace.pk),
        keep=keys["lady wombattitle"],
        others=[keys["zanzibarite engine"]],
    )
    services.delete_document(document=own)
    assert places_with_words(media_root) == set()


def test_merging_survives_the_text_and_holds_for_the_next_one(collection: Collection) -> None:
    scope = GraphScope(collection.workspace_id)
    first = "Ada Lovelace sold the yard to Tideway Group. Ada Lovelace left London."
    document = bring(collection, "a.md", first)
    group = Node.objects.get(name="Tideway Group")
    upsert_node(scope=scope, id="tideway", name="Tideway")
    merge_nodes(scope=scope, keep="tideway", others=[group.key])
    services.delete_document(document=document)
    assert names() == {"tideway"}
    bring(collection, "a.md", first.replace("London", "Bergen"))
    assert Mention.objects.filter(node__name="Tideway").count() == 1
    assert names() >= {"tideway", "ada lovelace", "bergen"}
    assert not names() & {"tideway group", "london"}


def test_a_changed_text_and_a_removed_version_leave_nothing_of_the_old_one(
    collection: Collection, media_root: Path
) -> None:
    bring(collection, "plain.txt", OWN)
    bring(collection, "plain.txt", OTHER)
    assert not any(place.startswith("graph_") for place in places_with_words(media_root))
    assert "ada lovelace" in names()

    versioned = CollectionFactory(workspace=collection.workspace)
    sources = (OWN, OTHER)
    for text in sources:
        ingest_inline(
            collection=versioned, sources=[text_source("plain.txt", text)], policy="new_version"
        )
    old = Document.objects.get(collection=versioned, version=1)
    services.delete_version(document=old)
    assert places_with_words(media_root) == set()


def test_a_deleted_collection_takes_what_it_told(
    by_model: Collection, collection: Collection, media_root: Path
) -> None:
    bring(collection, "other.txt", OTHER)
    before = everything()
    bring(by_model, "quokkasname.txt", OWN)
    services.delete_collection(collection=by_model)
    assert places_with_words(media_root) == set()
    assert everything() == before


def test_a_collection_that_is_not_read_any_more_is_forgotten(
    by_model: Collection, collection: Collection, media_root: Path
) -> None:
    bring(collection, "other.txt", OTHER)
    before = everything()
    bring(by_model, "quokkasname.txt", OWN)
    services.update_collection(collection=by_model, graph="off")
    assert not any(place.startswith("graph_") for place in places_with_words(media_root))
    assert everything() == before


def test_ingesting_and_reading_again_keep_every_row(
    collection: Collection, by_model: Collection
) -> None:
    for where in (collection, by_model):
        for key, text in (("one.txt", OWN), ("two.txt", OTHER)):
            bring(where, key, text)
    before = everything()
    assert before["Edge"]

    for where in (collection, by_model):
        ingest_inline(
            collection=where,
            sources=[text_source("one.txt", OWN), text_source("two.txt", OTHER)],
            policy="overwrite",
        )
        assert reextract_collection(collection=where) == 2
        assert extract_waiting(collection=where) == 2
    assert everything() == before


def test_what_curators_do_leaves_no_name_of_a_deleted_text(
    collection: Collection, client: Any, media_root: Path
) -> None:
    own = bring(collection, "quokkasname.txt", OWN)
    member = MembershipFactory(workspace=collection.workspace, user__is_superuser=True)
    client.force_login(member.user)
    engine = Node.objects.get(name__iexact="Zanzibarite Engine")
    lady = Node.objects.get(name__iexact="Lady Wombattitle")
    ada = Node.objects.get(name__iexact="Ada Lovelace")

    def post(page: str, *args: int, query: Any = None, **data: Any) -> None:
        answer = client.post(reverse(page, args=args, query=query), data)
        assert answer.status_code == 302, answer.content

    post("graph_node", query={"id": engine.key}, name="Zanzibarite Machine", labels="", props="")
    post("graph_node", query={"id": lady.key}, name=lady.name, aliases="Wombattitle the Elder")
    post("graph_edge_new", source=ada.key, rel="ZANZIBARITED", target=lady.key)
    post("admin:graph_edge_delete", Edge.objects.get().pk, post="yes")
    post("graph_merge", query={"id": [engine.key, lady.key], "keep": engine.key})
    post("admin:graph_node_delete", engine.pk, post="yes")
    assert LogEntry.objects.count() == 2

    services.delete_document(document=own)
    left = places_with_words(media_root)
    assert left == set()


def test_a_text_that_is_handed_over_to_its_duplicate_is_read_as_that_ones(
    collection: Collection, media_root: Path
) -> None:
    ingest_inline(
        collection=collection,
        sources=[text_source(key, OWN) for key in ("quokkasname.txt", "other.txt")],
        store_once=True,
    )
    first = Document.objects.get(key="quokkasname.txt")
    before = names()
    assert "zanzibarite engine" in before

    services.delete_document(document=first)
    extract_waiting(collection=collection)

    heir = Document.objects.get()
    assert Extraction.objects.get().document == heir
    assert names() == before
    assert set(Mention.objects.values_list("chunk__document", flat=True)) == {heir.pk}
    services.delete_document(document=heir)
    assert places_with_words(media_root) == set()


def test_an_edge_of_a_callers_stays_with_the_current_version(
    workspace: Workspace, collection: Collection
) -> None:
    ingest_inline(collection=collection, sources=[text_source("a", OWN)])
    scope = GraphScope(workspace.pk)
    current, former = f"doc:{collection.slug}:a", f"doc:{collection.slug}:a@v1"
    upsert_node(scope=scope, id="src:team:legal", name="Legal")
    upsert_edge(scope=scope, source="src:team:legal", rel="OWNS", target=current)
    ingest_inline(collection=collection, sources=[text_source("a", OTHER)], policy="new_version")
    owned = neighbors(scope=scope, id="src:team:legal", rel="OWNS").items
    assert [each.vertex.id for each in owned] == [current]
    upsert_edge(scope=scope, source="src:team:legal", rel="ARCHIVED", target=former)
    ingest_inline(
        collection=collection, sources=[text_source("a", OWN + OTHER)], policy="new_version"
    )
    archived = neighbors(scope=scope, id="src:team:legal", rel="ARCHIVED").items
    assert [each.vertex.id for each in archived] == [former]
