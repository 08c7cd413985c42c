"""`validate` is silent about what reading and people put into the graph, and names what breaks."""

from collections.abc import Callable
from datetime import timedelta

import pytest
from django.utils import timezone

from documents import services
from documents.ingestion.sources import text_source
from documents.models import Chunk, Collection, Document
from documents.tests.factories import ChunkFactory, CollectionFactory, WorkspaceFactory
from documents.validation import validate
from graph.models import Alias, Edge, Evidence, Extraction, Mention, Node
from graph.querysets import Origin
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]

TEXT = "Ada Lovelace met Charles Babbage in London. The Analytical Engine was his."


@pytest.fixture
def collection() -> Collection:
    """Two ingested documents, of which somebody said more: two nodes and edges, one of them
    found in a passage, and a node for one of the documents."""
    collection = CollectionFactory(default_language="en")
    sources = [text_source("one", TEXT, title="Ada Lovelace"), text_source("two", TEXT * 2)]
    services.ingest_inline(collection=collection, sources=sources)
    chunk = Chunk.objects.earliest("pk")
    ada = make_extracted("ent:test:ada", chunk)
    given = make_node("given", workspace=collection.workspace, form="given")
    make_edge(ada, "KNOWS", given)
    make_evidence(chunk, make_edge(given, "MET", ada, origin=Origin.EXTRACTED))
    paper = make_node("doc:c:one", workspace=collection.workspace, document=chunk.document)
    make_edge(paper, "ABOUT", ada)
    return collection


def problems(collection: Collection | None = None) -> dict[str, int]:
    report = validate(collection_id=collection.pk if collection else None)
    return {finding.check.name: finding.count for finding in report.findings}


def test_what_is_read_and_given_is_clean(collection: Collection) -> None:
    report = validate()
    assert report.is_clean
    assert {"node_untold", "edge_untold", "document_unread"} < set(report.checks)
    assert Extraction.objects.count() == 2


# --- what is broken ------------------------------------------------------------------------------


def elsewhere(collection: Collection) -> Node:
    return make_node(workspace=WorkspaceFactory())


def node_untold(collection: Collection) -> None:
    make_node("nobody", workspace=collection.workspace, form="nobody", origin=Origin.EXTRACTED)


def edge_untold(collection: Collection) -> None:
    Evidence.objects.all().delete()


def edge_workspace(collection: Collection) -> None:
    Edge.objects.filter(rel="KNOWS").update(target=elsewhere(collection))


def edge_derived(collection: Collection) -> None:
    Edge.objects.filter(rel="ABOUT").update(rel="MENTIONS")


def node_workspace(collection: Collection) -> None:
    make_node("doc:c:two", workspace=WorkspaceFactory(), document=Document.objects.get(key="two"))


def alias_workspace(collection: Collection) -> None:
    workspace = WorkspaceFactory()
    Alias.objects.create(workspace=workspace, form="ada", node=Node.objects.get(key="given"))


def mention_workspace(collection: Collection) -> None:
    make_mention(Chunk.objects.earliest("pk"), elsewhere(collection))


def evidence_workspace(collection: Collection) -> None:
    there = elsewhere(collection)
    make_evidence(Chunk.objects.earliest("pk"), make_edge(there, "IS", there))


def document_unread(collection: Collection) -> None:
    Extraction.objects.filter(document__key="one").delete()


def reading_without_lease(collection: Collection) -> None:
    Extraction.objects.filter(document__key="one").update(state="running")


def reading_abandoned(collection: Collection) -> None:
    long_ago = timezone.now() - timedelta(days=1)
    Extraction.objects.filter(document__key="one").update(state="running", leased_until=long_ago)


def reading_elsewhere(collection: Collection) -> None:
    Extraction.objects.filter(document__key="one").update(collection=CollectionFactory())


BY_HAND: list[tuple[Callable[[Collection], None], str]] = [
    (edge_workspace, "edge_workspace"),
    (edge_derived, "edge_derived"),
    (node_workspace, "node_workspace"),
    (mention_workspace, "mention_workspace"),
    (evidence_workspace, "evidence_workspace"),
]
MENDED: list[tuple[Callable[[Collection], None], str]] = [
    (node_untold, "node_untold"),
    (edge_untold, "edge_untold"),
    (alias_workspace, "alias_workspace"),
    (document_unread, "document_unread"),
    (reading_without_lease, "reading_without_lease"),
    (reading_abandoned, "reading_without_lease"),
    (reading_elsewhere, "reading_elsewhere"),
]


@pytest.mark.parametrize(("breakage", "check"), BY_HAND)
def test_what_a_person_must_judge_is_named_and_left(
    collection: Collection, breakage: Callable[[Collection], None], check: str
) -> None:
    breakage(collection)
    before = Node.objects.count(), Edge.objects.count(), Mention.objects.count()

    assert problems() == {check: 1}
    report = validate(fix=True)

    assert not report.is_clean
    assert report.fixed == {}
    assert (Node.objects.count(), Edge.objects.count(), Mention.objects.count()) == before


@pytest.mark.parametrize(("breakage", "check"), MENDED)
def test_what_is_broken_is_named_and_mended(
    collection: Collection, breakage: Callable[[Collection], None], check: str
) -> None:
    breakage(collection)

    assert problems() == {check: 1}
    report = validate(fix=True)

    assert report.fixed == {check: 1}
    assert report.is_clean
    assert set(Node.objects.filter(origin="given").values_list("key", flat=True)) == {
        "given",
        "doc:c:one",
    }
    assert set(Edge.objects.filter(origin="given").values_list("rel", flat=True)) == {
        "KNOWS",
        "ABOUT",
    }
    assert Extraction.objects.filter(collection=collection).count() == 2


def test_of_a_mention_its_passage_and_its_node_are_named(collection: Collection) -> None:
    mention_workspace(collection)
    mention = Mention.objects.exclude(node__workspace=collection.workspace).get()
    (finding,) = validate().findings
    assert finding.examples == (f"{mention.chunk_id} of {mention.node_id}",)


def test_what_is_left_of_the_nodes_of_an_untold_edge_goes_with_it(collection: Collection) -> None:
    workspace = collection.workspace
    ends = [make_node(key, workspace=workspace, origin=Origin.EXTRACTED) for key in ("a", "b")]
    make_edge(ends[0], "IS", ends[1], origin=Origin.EXTRACTED)

    assert problems() == {"edge_untold": 1}
    assert validate(fix=True).is_clean
    assert not Node.objects.filter(key__in=["a", "b"]).exists()


def test_one_collection_is_looked_at_alone(collection: Collection) -> None:
    for breakage in (mention_workspace, document_unread, node_untold):
        breakage(collection)

    assert problems(CollectionFactory()) == {}
    assert problems(collection) == {"mention_workspace": 1, "document_unread": 1}


def test_documents_that_the_graph_need_not_read_are_no_problem() -> None:
    off = ChunkFactory(document__collection__graph="off").document
    failed = ChunkFactory(document__status="failed").document
    superseded = ChunkFactory(document__is_current=False, is_current=False).document
    empty = CollectionFactory()
    assert "document_unread" not in problems()

    Collection.objects.filter(pk=off.collection_id).update(graph="llm")
    assert problems(off.collection)["document_unread"] == 1
    for document in (failed, superseded):
        assert "document_unread" not in problems(document.collection)
    assert problems(empty) == {}
