"""Nodes and edges are written as they are said, once, and no word of what is hidden is told."""

import pytest

from accounts.models import Workspace
from common.errors import InvalidInput
from documents.services import delete_document
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
)
from graph.models import Alias, Edge, Mention, Node
from graph.querysets import Origin
from graph.scopes import GraphScope, graph_scope
from graph.services import (
    Deletion,
    MissingNode,
    delete_edge,
    delete_nodes,
    deletion_preview,
    get_node,
    upsert_edge,
    upsert_node,
)
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node

pytestmark = pytest.mark.django_db

ADA = "ent:person:ada"


def test_what_is_not_said_stays_and_properties_are_added(scope: GraphScope) -> None:
    first = upsert_node(scope=scope, id=ADA, name="Ada Lovelace", props={"born": 1815, "a": [1]})
    then = upsert_node(scope=scope, id=ADA, labels=["person"], props={"a": 2})
    again = upsert_node(scope=scope, id=ADA, labels=["person"], props={"a": 2})

    assert [(each.created, each.changed) for each in (first, then, again)] == (
        [(True, True), (False, True), (False, False)]
    )
    assert (again.node.name, again.node.labels) == ("Ada Lovelace", ("person",))
    assert again.node.props == {"born": 1815, "a": 2}
    assert Node.objects.count() == 1


def test_an_edge_is_one_however_often_it_is_said(scope: GraphScope) -> None:
    said = {"scope": scope, "source": ADA, "rel": "WROTE", "target": "note g"}
    with pytest.raises(MissingNode, match=f"{ADA}.*note g"):
        upsert_edge(**said)
    assert not Node.objects.exists()

    first = upsert_edge(**said, strict=False, props={"year": 1842}, weight=2)
    then = upsert_edge(**said, props={"pages": 3})
    assert (first.created, first.stubs, then.created, then.changed) == (True, 2, False, True)
    assert (then.edge.weight, then.edge.props) == (2.0, {"year": 1842, "pages": 3})
    assert Edge.objects.count() == 1


def test_texts_find_a_node_by_its_names_unless_they_mean_another(scope: GraphScope) -> None:
    upsert_node(scope=scope, id=ADA, name="Ada Lovelace", aliases=["The Countess"])
    other = upsert_node(scope=scope, id="ent:person:other", name="Countess", aliases=["Other"])

    assert other.taken == ("countess",)
    forms = dict(Alias.objects.values_list("form", "node__key"))
    assert forms == {"ada lovelace": ADA, "countess": ADA, "other": "ent:person:other"}


def test_a_deleted_node_takes_its_edges_and_what_only_they_made(scope: GraphScope) -> None:
    upsert_node(scope=scope, id=ADA)
    upsert_node(scope=scope, id="described")
    for target in ("described", "only an end"):
        upsert_edge(scope=scope, source=ADA, rel="KNOWS", target=target, strict=False)

    assert delete_nodes(scope=scope, ids=[ADA]).nodes
    assert not delete_nodes(scope=scope, ids=[ADA]).nodes
    assert list(Node.objects.values_list("key", flat=True)) == ["described"]
    assert not Edge.objects.exists()
    assert not Alias.objects.exists()


def test_what_documents_tell_is_not_written(scope: GraphScope) -> None:
    with pytest.raises(InvalidInput, match="HAS_CHUNK comes from"):
        upsert_edge(scope=scope, source="doc:a:b", rel="HAS_CHUNK", target="x", strict=False)
    with pytest.raises(MissingNode, match="Name a document that is there"):
        upsert_edge(scope=scope, source="doc:a:b", rel="ABOUT", target="x", strict=False)


def test_a_document_bears_edges_labels_and_properties_of_callers(
    scope: GraphScope, workspace: Workspace
) -> None:
    chunk = ChunkFactory(document__collection=CollectionFactory(workspace=workspace))
    document = f"doc:{chunk.collection.slug}:{chunk.document.key}"
    passage = f"chunk:{chunk.collection.slug}:{chunk.document.key}:0"

    said = upsert_edge(scope=scope, source=document, rel="ABOUT", target=ADA, strict=False)
    upsert_edge(scope=scope, source=passage, rel="PROVES", target=document)
    described = upsert_node(scope=scope, id=document, labels=["report"], props={"draft": True})

    assert (said.edge.source, said.edge.target, said.stubs) == (document, ADA, 2)
    assert described.node.labels == ("Document", "report")
    assert Node.objects.filter(document=chunk.document).count() == 1
    assert Node.objects.filter(chunk=chunk).count() == 1
    with pytest.raises(InvalidInput, match="A document or passage takes its name from its title"):
        upsert_node(scope=scope, id=document, name="Other")
    with pytest.raises(InvalidInput, match="deleted with its document"):
        delete_nodes(scope=scope, ids=[document])
    assert delete_edge(scope=scope, source=document, rel="ABOUT", target=ADA)
    assert get_node(scope=scope, id=ADA) is None

    delete_document(document=chunk.document)
    assert not Edge.objects.exists()
    assert not Node.objects.exists()


def test_what_is_written_stays_when_the_documents_go(
    scope: GraphScope, workspace: Workspace
) -> None:
    chunk = ChunkFactory(document__collection=CollectionFactory(workspace=workspace))
    for name in ("a", "b", "c"):
        make_extracted(f"ent:name:{name}", chunk, props={"found": True})
    upsert_edge(scope=scope, source="ent:name:a", rel="KNOWS", target="ent:name:b")

    delete_document(document=chunk.document)
    assert list(Node.objects.values_list("key", "props", "origin")) == [
        ("ent:name:a", {"found": True}, "given"),
        ("ent:name:b", {"found": True}, "given"),
    ]
    assert Edge.objects.get().rel == "KNOWS"


def test_a_preview_tells_what_goes(scope: GraphScope, workspace: Workspace) -> None:
    chunk = ChunkFactory(document__collection=CollectionFactory(workspace=workspace))
    upsert_node(scope=scope, id=ADA, name="Ada", aliases=["Countess"])
    upsert_node(scope=scope, id="other", name="Other")
    for target in ("stub", "other", ADA):
        upsert_edge(scope=scope, source=ADA, rel="KNOWS", target=target, strict=False)
    make_mention(chunk, Node.objects.get(key=ADA))

    told = deletion_preview(scope=scope, ids=[ADA, "nobody"])
    assert told == Deletion(nodes=1, edges=3, mentions=1, aliases=2, stubs=1)
    assert delete_nodes(scope=scope, ids=[ADA, "nobody"]) == told
    assert list(Node.objects.values_list("key", flat=True)) == ["other"]
    assert not Mention.objects.exists()


class TestOutsiders:
    """Alice reads everything, Bob edits in the same workspace and may not read one document."""

    @pytest.fixture
    def secret(self, workspace: Workspace) -> Node:
        document = DocumentFactory(
            collection=CollectionFactory(workspace=workspace), access=["user:0"]
        )
        chunk = ChunkFactory(document=document)
        node = make_extracted(
            "ent:name:merger", chunk, name="Merger", labels=["secret"], props={"price": 7}
        )
        target = make_node("ent:name:acme", workspace=workspace)
        edge = make_edge(
            node, "WITH", target, weight=9, props={"price": 7}, origin=Origin.EXTRACTED
        )
        make_evidence(chunk, edge)
        return node

    @pytest.fixture
    def bob(self, workspace: Workspace) -> GraphScope:
        return graph_scope(user=MembershipFactory(workspace=workspace).user, workspace=workspace)

    def test_a_hidden_node_begins_anew_for_who_writes_it(
        self, bob: GraphScope, secret: Node
    ) -> None:
        change = upsert_node(scope=bob, id=secret.key, props={"mine": 1})

        assert change.created
        assert (change.node.labels, change.node.props) == ((), {"mine": 1})
        assert change.node.name == secret.key
        assert not upsert_node(scope=bob, id=secret.key, props={"mine": 1}).changed

    def test_a_hidden_node_is_missing_and_made_where_an_edge_needs_it(
        self, bob: GraphScope, secret: Node
    ) -> None:
        said = {"scope": bob, "source": secret.key, "rel": "WITH", "target": "ent:name:acme"}
        with pytest.raises(MissingNode, match="ent:name:merger"):
            upsert_edge(**said)
        change = upsert_edge(**said, strict=False)

        assert (change.created, change.stubs, change.edge.weight, change.edge.props) == (
            True,
            1,
            1.0,
            {},
        )
        assert Edge.objects.count() == 1

    def test_a_hidden_node_is_neither_deleted_nor_told_of(
        self, bob: GraphScope, secret: Node
    ) -> None:
        edge = {"source": secret.key, "rel": "WITH", "target": "ent:name:acme"}
        assert not delete_nodes(scope=bob, ids=[secret.key]).nodes
        assert not delete_edge(scope=bob, **edge)
        assert deletion_preview(scope=bob, ids=[secret.key]) == Deletion()
        assert deletion_preview(scope=bob, ids=["ent:name:acme"]) == Deletion(nodes=1)
        assert delete_edge(scope=GraphScope(bob.workspace_id), **edge)

    def test_a_name_that_a_hidden_node_has_is_not_told_to_be_taken(
        self, bob: GraphScope, secret: Node
    ) -> None:
        assert upsert_node(scope=bob, id="ent:mine:merger").taken == ()
        alice = GraphScope(bob.workspace_id)
        assert upsert_node(scope=alice, id="ent:mine:other", name="Merger").taken == ("merger",)
        assert Alias.objects.get(form="merger").node == secret

    def test_a_hidden_document_is_not_there(self, bob: GraphScope, secret: Node) -> None:
        chunk = Mention.objects.get().chunk
        document = f"doc:{chunk.collection.slug}:{chunk.document.key}"
        with pytest.raises(MissingNode, match="Name a document that is there"):
            upsert_edge(scope=bob, source=document, rel="ABOUT", target=ADA, strict=False)
        assert not Node.objects.filter(document=chunk.document).exists()
