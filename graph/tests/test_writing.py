"""Nodes and edges are written as they are said, once, and no word of what is hidden is told."""

import pytest

from common.errors import InvalidInput
from documents.tests.factories import WorkspaceFactory
from graph.models import Alias, Edge, Node
from graph.scopes import GraphScope
from graph.services import (
    MissingNode,
    delete_node,
    upsert_edge,
    upsert_node,
)

pytestmark = pytest.mark.django_db

ADA = "ent:person:ada"


@pytest.fixture
def scope() -> GraphScope:
    return GraphScope(WorkspaceFactory().pk)


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
    assert (then.weight, then.props) == (2.0, {"year": 1842, "pages": 3})
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

    assert delete_node(scope=scope, id=ADA)
    assert not delete_node(scope=scope, id=ADA)
    assert list(Node.objects.values_list("key", flat=True)) == ["described"]
    assert not Edge.objects.exists()
    assert not Alias.objects.exists()


def test_what_documents_tell_is_not_written(scope: GraphScope) -> None:
    with pytest.raises(InvalidInput, match="HAS_CHUNK of documents"):
        upsert_edge(scope=scope, source="doc:a:b", rel="HAS_CHUNK", target="x", strict=False)
    with pytest.raises(MissingNode, match="Name a document that is there"):
        upsert_edge(scope=scope, source="doc:a:b", rel="ABOUT", target="x", strict=False)
