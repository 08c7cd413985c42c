"""The admin of the graph: curated by the services, logged without names, light at hubs."""

import html
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from documents.models import Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    MembershipFactory,
    UserFactory,
)
from graph.admin import matches_node
from graph.models import Alias, Edge, Evidence, Extraction, Mention, Node
from graph.querysets import Origin
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_node
from tests.kit import act, log_texts, logged_in, page_of

pytestmark = pytest.mark.django_db

HOSTILE = "<script>alert(1)</script>\u202e' OR 1=1 --"
State = Extraction.State


@pytest.fixture
def client() -> Client:
    return logged_in(UserFactory(is_superuser=True))


def what_goes(client: Client, *rows: models.Model) -> dict[str, int]:
    """As the preview of deleting these counts it."""
    chosen = {"action": "delete_selected", "_selected_action": [row.pk for row in rows]}
    answer = client.post(page_of(type(rows[0])), chosen)
    return {str(name): number for name, number in answer.context["model_count"]}


def found(client: Client, model: type[models.Model], **query: str) -> set[Any]:
    return set(client.get(page_of(model), query).context["cl"].result_list)


def shown(client: Client, row: models.Model) -> str:
    return html.unescape(client.get(page_of(row, "change")).content.decode())


# --- nodes ---------------------------------------------------------------------------------------


def test_a_node_is_found_by_name_other_name_id_label_and_workspace(client: Client) -> None:
    ada = make_extracted("ent:name:ada lovelace", ChunkFactory(), name="Ada Lovelace")
    other = make_node("src:crm:17", name="Grace", labels=["Person", "Admiral"])
    Alias.objects.create(workspace=other.workspace, node=other, form="amazing grace")

    assert found(client, Node) == {ada, other}
    assert found(client, Node, q="LOVE") == {ada}
    for pattern in ("%", "_", "a%e", "\\", "'"):
        assert found(client, Node, q=pattern) == set()
    assert found(client, Node, q="the amazing grace") == {other}
    assert found(client, Node, q="src:crm:17") == {other}
    assert found(client, Node, label="Admiral") == {other}
    assert found(client, Node, label="Admi") == set()
    assert found(client, Node, origin__exact="extracted") == {ada}
    assert found(client, Node, workspace__id__exact=str(ada.workspace_id)) == {ada}


def test_finding_a_node_reads_indexes_only() -> None:
    make_node(name="Ada", form="ada")
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
    plan = Node.objects.filter(matches_node("Ada Lovelace")).explain()
    assert "node_name_index" in plan
    assert "node_workspace_key_unique" in plan
    assert "Seq Scan" not in plan


def test_a_hub_costs_as_much_as_any_node(client: Client) -> None:
    chunks = [ChunkFactory() for _ in range(2)]
    node = make_extracted("hub", chunks[0], name="Hub")
    other = make_node(workspace=node.workspace)
    make_edge(node, "R0", other)
    make_edge(other, "R0", node)

    def queries() -> list[str]:
        with CaptureQueriesContext(connection) as captured:
            client.get(page_of(node, "change"))
        return [each["sql"] for each in captured]

    queries()  # the first of a process looks up what is kept from then on
    before = len(queries())
    many = [
        Node(workspace=node.workspace, key=f"n{number}", name="n" * 50) for number in range(200)
    ]
    Node.objects.bulk_create(many)
    for ends in ((lambda each: (node, each)), (lambda each: (each, node))):
        Edge.objects.bulk_create(
            Edge(workspace=node.workspace, source=ends(each)[0], rel="R", target=ends(each)[1])
            for each in many
        )
    after = queries()
    assert len(after) == before
    assert all("LIMIT" in sql for sql in after if 'FROM "graph_edge"' in sql)
    assert shown(client, node).count(">201</a>") == 2


def test_a_row_shows_what_belongs_to_it_and_leads_to_its_page() -> None:
    member = MembershipFactory(user__is_superuser=True)
    client = logged_in(member)
    collection = CollectionFactory(workspace=member.workspace)
    chunk = ChunkFactory(document__collection=collection, document__title="Notes on the engine")
    ada = make_extracted("ent:name:ada & co", chunk, name="Ada")
    edge = make_edge(ada, "INSPIRED", make_node("engine", workspace=member.workspace))
    ends = {"source": ada.key, "rel": edge.rel, "target": "engine"}
    page = shown(client, ada)

    assert "Notes on the engine" in page
    assert reverse("admin:documents_chunk_change", args=[chunk.pk]) in page
    for row, address in (
        (ada, reverse("graph_node", query={"id": ada.key})),
        (ada.aliases.get(), reverse("graph_node", query={"id": ada.key})),
        (edge, reverse("graph_edge", query=ends)),
    ):
        assert f'href="{address}"' in shown(client, row)
        assert client.get(address).status_code == 200
        assert client.get(page_of(type(row), "add")).status_code == 403
        assert client.post(page_of(row, "change"), {"name": "x"}).status_code == 403


# --- deleting ------------------------------------------------------------------------------------


def test_deleting_shows_what_goes_and_leaves_the_rest(client: Client) -> None:
    chunk = ChunkFactory()
    ada = make_extracted("ent:name:ada", chunk, name="Ada")
    bob = make_node("bob", workspace=ada.workspace, name="Bob", form="bob")
    make_evidence(chunk, make_edge(ada, "KNOWS", bob))
    Alias.objects.create(workspace=ada.workspace, node=ada, form="countess")

    assert what_goes(client, ada) == {
        "nodes": 1,
        "edges": 1,
        "mentions": 1,
        "names in texts": 2,
    }
    act(client, "delete_selected", ada, post="yes")

    assert list(Node.objects.all()) == [bob]
    assert not Edge.objects.exists()
    assert not Mention.objects.exists()
    assert not Evidence.objects.exists()
    assert Alias.objects.get().node == bob
    entry = LogEntry.objects.get()
    assert entry.object_repr == f"node {ada.pk}"
    assert "Ada" not in log_texts()


def test_nodes_of_several_workspaces_are_deleted_together(client: Client) -> None:
    rows = [make_node("same") for _ in range(3)]
    assert what_goes(client, *rows[:2])["nodes"] == 2
    act(client, "delete_selected", *rows[:2], post="yes")
    assert list(Node.objects.all()) == rows[2:]


def test_what_stands_for_a_document_is_not_deleted_and_its_edges_are(client: Client) -> None:
    document = DocumentFactory()
    node = make_node("doc:a:b", workspace=document.workspace, document=document)
    edge = make_edge(node, "ABOUT", make_node(workspace=node.workspace))

    assert str(document) in shown(client, node)
    assert client.get(page_of(node, "delete")).status_code == 403
    page = act(client, "delete_selected", node, post="yes")
    assert "deleted with its document" in page
    assert Node.objects.filter(pk=node.pk).exists()

    assert client.post(page_of(edge, "delete"), {"post": "yes"}).status_code == 302
    assert not Edge.objects.exists()


# --- merging -------------------------------------------------------------------------------------


def test_merging_opens_the_page_of_the_graph() -> None:
    member = MembershipFactory(user__is_superuser=True)
    client = logged_in(member)
    one, two = (make_node(key, workspace=member.workspace) for key in ("a b", "c&d"))
    elsewhere = make_node()

    chosen = {"action": "merge_selected", "_selected_action": [one.pk, two.pk]}
    answer = client.post(page_of(Node), chosen)
    assert answer.headers["Location"] == "/graph/merge/?id=c%26d&id=a+b"
    assert client.get(answer.headers["Location"]).status_code == 200
    assert "Select 2 to 25 nodes" in act(client, "merge_selected", one)
    assert "switch to theirs first" in act(client, "merge_selected", one, elsewhere)
    assert Node.objects.count() == 3


# --- edges ---------------------------------------------------------------------------------------


def test_an_edge_is_found_by_its_nodes_and_its_relation_and_tells_its_passages(
    client: Client,
) -> None:
    chunk = ChunkFactory(text="Ada knew Bob. It rained.", document__title="Letters")
    ada = make_extracted("ent:name:ada", chunk, name="Ada")
    bob = make_extracted("ent:name:bob", chunk, name="Bob")
    knows = make_edge(ada, "KNOWS", bob, origin=Origin.EXTRACTED)
    make_evidence(chunk, knows, start=0, end=13)
    likes = make_edge(bob, "LIKES", bob)

    assert found(client, Edge, q="ada") == {knows}
    assert found(client, Edge, q="ent:name:bob") == {knows, likes}
    assert found(client, Edge, rel="LIKES") == {likes}
    assert found(client, Edge, source__id__exact=str(ada.pk)) == {knows}
    page = shown(client, knows)
    assert "<bdi>Ada knew Bob.</bdi>" in page
    assert "Letters" in page


def test_an_edge_is_deleted_with_its_evidence(client: Client) -> None:
    ada = make_node(name="Ada")
    edge = make_edge(ada, "KNOWS", make_node(workspace=ada.workspace))
    make_evidence(ChunkFactory(), edge)

    assert what_goes(client, edge) == {"edges": 1, "pieces of evidence": 1}
    act(client, "delete_selected", edge, post="yes")
    assert not Edge.objects.exists()
    assert Node.objects.count() == 2
    assert LogEntry.objects.get().object_repr == f"edge {edge.pk}"


# --- names ---------------------------------------------------------------------------------------


def test_a_name_is_found_in_any_spelling_and_removed(client: Client) -> None:
    node = make_node(name="Ada", form="countess friend")
    alias = Alias.objects.get()
    assert found(client, Alias, q="The COUNTESS’s, friend") == {alias}

    act(client, "delete_selected", alias, post="yes")
    assert not Alias.objects.exists()
    assert Node.objects.get() == node
    assert "countess" not in log_texts()


# --- the queue -----------------------------------------------------------------------------------


def reading(state: str, **given: Any) -> Extraction:
    document = ChunkFactory().document
    owner = {"workspace": document.workspace, "collection": document.collection}
    return Extraction.objects.create(**owner, document=document, state=state, **given)


def test_what_was_given_up_stands_first_and_is_tried_again(client: Client) -> None:
    done = reading(State.DONE, mentions=12)
    dead = reading(State.DEAD, attempts=5, error=HOSTILE)

    listed = list(client.get(page_of(Extraction)).context["cl"].result_list)
    assert listed == [dead, done]
    assert "<script>alert(1)" not in client.get(page_of(Extraction)).content.decode()
    assert "1 of 2 are in the queue again" in act(client, "try_again", done, dead)

    dead.refresh_from_db()
    done.refresh_from_db()
    assert (dead.state, dead.attempts) == (State.WAITING, 0)
    assert dead.due_at is not None
    assert done.state == State.DONE


def test_anything_is_read_again_unless_its_collection_is_not(client: Client) -> None:
    done, dead, off = reading(State.DONE), reading(State.DEAD), reading(State.DONE)
    Collection.objects.filter(pk=off.collection_id).update(graph="off")

    assert "2 of 3 are in the queue" in act(client, "read_again", done, dead, off)

    for row in (done, dead, off):
        row.refresh_from_db()
    assert [row.state for row in (done, dead, off)] == [State.WAITING, State.WAITING, State.DONE]
