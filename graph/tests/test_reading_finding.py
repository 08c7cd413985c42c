"""Finding nodes and documents while somebody types."""

import pytest
from django.db import connection

from accounts.models import Workspace
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph import services
from graph.extraction.normalized_names import normalize_name
from graph.reading.search import _parameters
from graph.reading.vertices import load_sql
from graph.scopes import AccessFilter, GraphScope
from graph.tests.factories import make_edge, make_extracted, make_mention, make_node

pytestmark = pytest.mark.django_db


def named(workspace: Workspace, *names: str) -> None:
    for name in names:
        make_node(
            f"ent:name:{normalize_name(name)}",
            workspace=workspace,
            name=name,
            form=normalize_name(name),
        )


def found(scope: GraphScope, text: str, **options: object) -> list[str]:
    return [vertex.name for vertex in services.find_nodes(scope=scope, text=text, **options)]


def test_what_is_called_so_comes_first_then_what_begins_so_then_what_holds_it(
    workspace: Workspace, scope: GraphScope
) -> None:
    named(workspace, "Lady Ada", "Adam Smith", "Ada", "Ada Lovelace", "Bob")
    assert found(scope, "ada") == ["Ada", "Adam Smith", "Ada Lovelace", "Lady Ada"]
    assert found(scope, "ADA", limit=2) == ["Ada", "Adam Smith"]
    assert found(scope, "a") == ["Ada", "Adam Smith", "Ada Lovelace"]


def test_a_misspelt_name_finds_what_is_like_it(workspace: Workspace, scope: GraphScope) -> None:
    named(workspace, "Ada Lovelace", "Charles Babbage")
    assert found(scope, "Lovelacce") == ["Ada Lovelace"]
    assert found(scope, "Xylophone") == []


def test_a_node_is_found_by_its_aliases_and_its_id(workspace: Workspace, scope: GraphScope) -> None:
    make_node("src:crm:4711", workspace=workspace, name="Big Customer", form="the whale")
    assert found(scope, "the wh") == []
    make_node(
        "src:crm:4712",
        workspace=workspace,
        name="Small Customer",
        form=normalize_name("Minnow Ltd"),
    )
    assert found(scope, "minnow") == ["Small Customer"]
    assert found(scope, "src:crm:4711") == ["Big Customer"]
    assert found(scope, "src:crm:") == ["Big Customer", "Small Customer"]


def test_documents_are_found_by_their_titles_and_passages_by_their_id(
    workspace: Workspace, scope: GraphScope
) -> None:
    collection = CollectionFactory(workspace=workspace, slug="notes")
    chunk = ChunkFactory(
        document=DocumentFactory(collection=collection, key="a.txt", title="The Analytical Engine")
    )
    assert found(scope, "analytical") == ["The Analytical Engine"]
    assert found(scope, "Analitical") == ["The Analytical Engine"]
    assert found(scope, "analytical", kinds=["node"]) == []
    assert found(scope, "doc:notes:a.txt") == [chunk.document.title]
    (passage,) = services.find_nodes(scope=scope, text="chunk:notes:a.txt:0")
    assert passage.kind == "chunk"


def test_labels_narrow_what_is_found(workspace: Workspace, scope: GraphScope) -> None:
    make_node("a", workspace=workspace, name="Mercury", labels=["Planet", "Place"], form="mercury")
    make_node("b", workspace=workspace, name="Mercury", labels=["Metal"])
    DocumentFactory(collection=CollectionFactory(workspace=workspace), title="Mercury")
    found = services.find_nodes(scope=scope, text="mercury", labels=["Planet"])
    assert [vertex.id for vertex in found] == ["a"]
    found = services.find_nodes(scope=scope, text="mercury", labels=["Metal", "Document"])
    assert [vertex.kind for vertex in found] == ["document", "node"]
    assert services.find_nodes(scope=scope, text="a", labels=["Metal"]) == ()


@pytest.mark.parametrize(
    "text", ["", "  ", "\0", "%", "_", "\\", "'", "%(text)s", "x" * 10_000, "\ud800"]
)
def test_anything_may_be_typed(workspace: Workspace, scope: GraphScope, text: str) -> None:
    named(workspace, "Ada")
    assert found(scope, text) == []


def test_names_with_marks_of_patterns_are_found_by_them(
    workspace: Workspace, scope: GraphScope
) -> None:
    make_node("x", workspace=workspace, name="100%_sure\\")
    make_node("y", workspace=workspace, name="1000 sure")
    assert found(scope, "100%_s") == ["100%_sure\\"]


def test_every_list_is_read_from_an_index(workspace: Workspace, scope: GraphScope) -> None:
    with connection.cursor() as cursor:
        cursor.execute(
            """
            WITH made AS (
                INSERT INTO graph_node (
                    workspace_id, key, name, labels, props, origin, created_at, updated_at)
                SELECT %(workspace)s, 'ent:name:' || word, word, '{}', '{}', 'given', now(), now()
                FROM (SELECT md5(number::text) AS word FROM generate_series(1, 5000) AS number)
                RETURNING id, name
            )
            INSERT INTO graph_alias (workspace_id, form, node_id)
            SELECT %(workspace)s, name, id FROM made
            """,
            {"workspace": workspace.pk},
        )
        cursor.execute("SELECT gin_clean_pending_list('node_name_index')")  # as vacuum does
        cursor.execute("ANALYZE graph_node, graph_alias")
        cursor.execute("SET LOCAL enable_seqscan = off")  # whatever the table's size
        seen = AccessFilter(scope)
        statement = load_sql("find_nodes").format(node=seen.node("node"), labels="TRUE")
        given = seen.parameters | _parameters("cfcd208", "cfcd208", (), 10)
        cursor.execute(f"EXPLAIN {statement}", given)
        plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "Seq Scan on graph_" not in plan
    for index in ("node_name_index", "alias_workspace_form_unique", "node_workspace_key_unique"):
        assert index in plan


def test_statistics_tell_what_a_graph_is_made_of(workspace: Workspace, scope: GraphScope) -> None:
    collection = CollectionFactory(workspace=workspace)
    chunk = ChunkFactory(document=DocumentFactory(collection=collection))
    ada = make_extracted("ent:name:ada", chunk, labels=["Person"], name="Ada")
    bob = make_node("bob", workspace=workspace, labels=["Person", "Owner"])
    thing = make_node("thing", workspace=workspace)
    make_mention(chunk, bob)
    for rel, target in (("KNOWS", ada), ("OWNS", thing), ("OWNS", bob)):
        make_edge(bob, rel, target)
    told = services.graph_statistics(scope=scope)
    assert (told.nodes, told.edges, told.documents, told.sampled) == (3, 3, 1, False)
    assert told.origins == {"given": 2, "extracted": 1}
    assert told.labels == {"Person": 2, "Owner": 1}
    assert told.rels == {"OWNS": 2, "KNOWS": 1}
    assert [(each.vertex.id, each.degree) for each in told.best_connected] == [
        ("bob", 3),
        ("ent:name:ada", 1),
        ("thing", 1),
    ]
