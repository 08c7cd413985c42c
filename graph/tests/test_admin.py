"""The admin of the graph: curated by the services, logged without names, light at hubs."""

import html
import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Permission
from django.db import connection, models
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from documents.models import Collection
from documents.tests.factories import (
    ChunkFactory,
    CollectionFactory,
    DocumentFactory,
    UserFactory,
    WorkspaceFactory,
)
from graph.admin import nodes as admin_nodes
from graph.admin.forms import matches_node
from graph.models import Alias, Edge, Evidence, Extraction, Mention, Node
from graph.querysets import Origin
from graph.services.edits import add_alias
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


def test_a_node_is_added_and_texts_find_it(client: Client) -> None:
    workspace = WorkspaceFactory()
    form = {
        "workspace": workspace.pk,
        "key": "src:crm:17",
        "name": "Zoë Müller",
        "labels": "Person\n\n Customer \n",
        "props": '{"since": 2020}',
    }
    assert client.post(page_of(Node, "add"), form).status_code == 302

    node = Node.objects.get()
    assert (node.workspace, node.key, node.origin) == (workspace, "src:crm:17", "given")
    assert (node.name, node.labels) == ("Zoë Müller", ["Person", "Customer"])
    assert node.props == {"since": 2020}
    assert Alias.objects.get().form == "zoe muller"
    entry = LogEntry.objects.get()
    assert (entry.object_id, entry.object_repr) == (str(node.pk), f"node {node.pk}")


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"key": "  "}, "at least one visible character"),
        ({"key": "doc:notes:a.md"}, "This prefix is reserved for documents and passages"),
        ({"key": "there"}, "“Somebody” already has this id"),
        ({"key": "former"}, "“Somebody” (there) already has this id"),
        ({"props": "{"}, "Enter a valid JSON"),
        ({"props": "[1]"}, "Properties must be a JSON object"),
        ({"workspace": ""}, "This field is required"),
    ],
)
def test_what_the_service_would_refuse_is_said_beside_the_field(
    client: Client, wrong: dict[str, str], said: str
) -> None:
    node = make_node("there", name="Somebody")
    Alias.objects.create(workspace=node.workspace, node=node, form="=former")
    form = {"workspace": node.workspace_id, "key": "new", **wrong}

    answer = client.post(page_of(Node, "add"), form)

    assert answer.status_code == 200
    assert said in html.unescape(answer.content.decode())
    assert Node.objects.count() == 1


def test_describing_a_found_node_makes_it_given(client: Client) -> None:
    node = make_extracted("ent:name:ada", ChunkFactory(), name="Ada", props={"a": 1, "b": 2})
    form = {"name": "Ada Lovelace", "labels": "Person", "props": '{"b": 3}'}

    assert client.post(page_of(node, "change"), form).status_code == 302

    node.refresh_from_db()
    assert (node.name, node.labels, node.props) == ("Ada Lovelace", ["Person"], {"b": 3})
    assert (node.key, node.origin) == ("ent:name:ada", "given")
    assert set(node.aliases.values_list("form", flat=True)) == {"ada", "ada lovelace"}
    assert "Lovelace" not in log_texts()


def test_nothing_typed_changes_nothing(client: Client) -> None:
    node = make_extracted(
        "ent:name:ada", ChunkFactory(), name="Ada", labels=["A", "B"], props={"é": [1, None]}
    )
    before = Node.objects.values().get()
    page = client.get(page_of(node, "change"))
    form = page.context["adminform"].form
    typed = {name: form[name].value() for name in ("name", "labels", "props")}
    typed["labels"] = "A\nB"
    typed["props"] = json.dumps({"é": [1, None]})

    assert client.post(page_of(node, "change"), typed).status_code == 302
    assert Node.objects.values().get() == before


def test_a_node_is_found_by_name_other_name_id_label_and_workspace(client: Client) -> None:
    ada = make_extracted("ent:name:ada lovelace", ChunkFactory(), name="Ada Lovelace")
    other = make_node("src:crm:17", name="Grace", labels=["Person", "Admiral"])
    add_alias(node=other, name="Amazing Grace")

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


def test_a_node_shows_its_edges_names_and_passages_with_links(client: Client) -> None:
    chunk = ChunkFactory(document__title="Notes on the engine")
    ada = make_extracted("ent:name:ada", chunk, name="Ada")
    engine = make_node("engine", workspace=ada.workspace, name="Engine")
    out, back = make_edge(ada, "WROTE_ABOUT", engine), make_edge(engine, "INSPIRED", ada)
    add_alias(node=ada, name="Countess of Lovelace")

    page = shown(client, ada)

    for row in (out, back, engine):
        assert page_of(row, "change") in page
    for words in ("WROTE_ABOUT", "INSPIRED", "Engine", "countess of lovelace"):
        assert words in page
    assert reverse("admin:documents_chunk_change", args=[chunk.pk]) in page
    assert "Notes on the engine" in page
    assert "all passages (1)" in page


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
    page = shown(client, node)
    assert page.count(">R</a>") == 2 * (admin_nodes.MAX_EDGES - 1)
    assert "all edges (201)" in page


def test_passages_are_paged(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admin_nodes, "MENTIONS_PER_PAGE", 2)
    document = DocumentFactory(title="Notes")
    chunks = [ChunkFactory(document=document, text=f"Ada number {n}") for n in range(5)]
    node = make_extracted("ada", *chunks)
    Mention.objects.update(start=0, end=3)
    address: str = reverse("admin:graph_node_mentions", args=[node.pk])
    seen = []
    for _ in range(3):
        answer = client.get(address)
        seen.append([words for _, words in answer.context["rows"]])
        address = f"?after={answer.context['next']}"
        address = reverse("admin:graph_node_mentions", args=[node.pk]) + address
    assert seen == [["Ada", "Ada"], ["Ada", "Ada"], ["Ada"]]
    assert client.get(address.split("?")[0], {"after": "x'"}).status_code == 200


# --- deleting ------------------------------------------------------------------------------------


def test_deleting_shows_what_goes_and_leaves_the_rest(client: Client) -> None:
    chunk = ChunkFactory()
    ada = make_extracted("ent:name:ada", chunk, name="Ada")
    bob = make_node("bob", workspace=ada.workspace, name="Bob", form="bob")
    make_evidence(chunk, make_edge(ada, "KNOWS", bob))
    add_alias(node=ada, name="Countess")

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


def test_what_stands_for_a_document_is_neither_changed_nor_deleted(client: Client) -> None:
    document = DocumentFactory()
    node = make_node("doc:a:b", workspace=document.workspace, document=document)
    edge = make_edge(node, "ABOUT", make_node(workspace=node.workspace))

    assert str(document) in shown(client, node)
    assert client.post(page_of(node, "change"), {"name": "x"}).status_code == 403
    assert client.get(page_of(node, "delete")).status_code == 403
    page = act(client, "delete_selected", node, post="yes")
    assert "deleted with its document" in page
    assert Node.objects.filter(pk=node.pk).exists()

    assert client.post(page_of(edge, "change"), {"weight": "3"}).status_code == 403
    assert client.post(page_of(edge, "delete"), {"post": "yes"}).status_code == 302
    assert not Edge.objects.exists()


# --- merging -------------------------------------------------------------------------------------


def merging(client: Client, *rows: Node) -> Any:
    """The page that the action leads to."""
    chosen = {"action": "merge_selected", "_selected_action": [row.pk for row in rows]}
    return client.post(page_of(Node), chosen, follow=True)


def test_merging_says_what_becomes_of_the_nodes_and_does_it(client: Client) -> None:
    chunk = ChunkFactory()
    ada = make_extracted("ent:name:ada", chunk, name="Ada")
    lovelace = make_extracted("ent:name:lovelace", chunk, name="Lovelace")
    bob = make_node("bob", workspace=ada.workspace)
    make_edge(ada, "KNOWS", bob)
    make_edge(lovelace, "KNOWS", bob)
    make_edge(lovelace, "IS", ada)

    page = merging(client, ada, lovelace)
    assert page.context["kept"] == ada
    assert "All of them come from documents" in page.content.decode()
    told = page.context["preview"]
    assert (told.nodes, told.edges_dropped, told.mentions, told.aliases) == (1, 1, 1, 1)
    address = page.request["PATH_INFO"] + "?" + page.request["QUERY_STRING"]

    other = client.post(address, {"keep": lovelace.pk, "shown": ada.pk, "see": ""})
    assert other.context["kept"] == lovelace
    assert Node.objects.count() == 3

    done = client.post(address, {"keep": lovelace.pk, "shown": lovelace.pk, "merge": ""})
    assert done.headers["Location"] == page_of(lovelace, "change")
    assert set(Node.objects.all()) == {lovelace, bob}
    assert Edge.objects.get().source == lovelace
    assert Mention.objects.get().node == lovelace
    assert set(Alias.objects.values_list("form", "node")) == {
        ("ada", lovelace.pk),
        ("lovelace", lovelace.pk),
        ("=ent:name:ada", lovelace.pk),
    }
    assert LogEntry.objects.get().object_id == str(lovelace.pk)
    assert "ada" not in log_texts().lower()


def test_what_was_not_shown_is_not_merged(client: Client) -> None:
    """Whoever chooses another node and presses “Merge” sees first what becomes of them then."""
    workspace = WorkspaceFactory()
    one, two = (make_node(workspace=workspace) for _ in range(2))
    page = merging(client, one, two)
    address = page.request["PATH_INFO"] + "?" + page.request["QUERY_STRING"]

    answer = client.post(address, {"keep": two.pk, "shown": one.pk, "merge": ""})
    assert answer.status_code == 200
    assert answer.context["kept"] == two
    assert Node.objects.count() == 2


def test_the_node_that_somebody_gave_is_proposed_to_stay(client: Client) -> None:
    found_one = make_extracted("ent:name:ada", ChunkFactory())
    given = make_node("given", workspace=found_one.workspace)
    page = merging(client, found_one, given)
    assert page.context["kept"] == given
    assert "All of them come from documents" not in page.content.decode()


def test_what_cannot_be_merged_is_said(client: Client) -> None:
    one, elsewhere = make_node(), make_node()
    document = DocumentFactory(collection=CollectionFactory(workspace=one.workspace))
    content = make_node("doc:a:b", workspace=one.workspace, document=document)

    assert "Select 2 to 50 nodes" in merging(client, one).content.decode()
    assert "of one workspace" in merging(client, one, elsewhere).content.decode()
    said = html.unescape(merging(client, one, content).content.decode())
    assert "and cannot be merged" in said or "There is no node" in said
    for ids in ("", "x", "1' OR 1=1", "9" * 30, f"{one.pk},{one.pk}"):
        answer = client.get(reverse("admin:graph_node_merge"), {"ids": ids}, follow=True)
        assert "at least two nodes" in answer.content.decode()
    assert Node.objects.count() == 3


def test_only_who_may_change_and_delete_nodes_merges() -> None:
    one = make_node()
    two = make_node(workspace=one.workspace)
    staff = UserFactory(is_staff=True)
    client = logged_in(staff)
    address = reverse("admin:graph_node_merge")

    def grant(*names: str) -> None:
        staff.user_permissions.set(Permission.objects.filter(codename__in=names))

    grant("view_node", "change_node")
    assert client.get(address, {"ids": f"{one.pk},{two.pk}"}).status_code == 403
    assert "Merge selected" not in client.get(page_of(Node)).content.decode()
    grant("view_node", "change_node", "delete_node")
    assert client.get(address, {"ids": f"{one.pk},{two.pk}"}).status_code == 200
    assert "Merge selected" in client.get(page_of(Node)).content.decode()
    grant()
    passages = reverse("admin:graph_node_mentions", args=[one.pk])
    assert client.get(passages).status_code == 403


# --- edges ---------------------------------------------------------------------------------------


def test_an_edge_is_added_weighed_and_deleted(client: Client) -> None:
    ada = make_node(name="Ada")
    bob = make_node(workspace=ada.workspace, name="Bob")
    form = {
        "source": ada.pk,
        "rel": "KNOWS",
        "target": bob.pk,
        "weight": "0.5",
        "props": '{"a": 1}',
    }
    assert client.post(page_of(Edge, "add"), form).status_code == 302
    edge = Edge.objects.get()
    assert (edge.source, edge.rel, edge.target, edge.weight) == (ada, "KNOWS", bob, 0.5)
    assert (edge.props, edge.origin) == ({"a": 1}, "given")

    answer = client.post(page_of(edge, "change"), {"weight": "2", "props": ""})
    assert answer.status_code == 302
    edge.refresh_from_db()
    assert (edge.weight, edge.props) == (2.0, {})

    assert what_goes(client, edge) == {"edges": 1, "pieces of evidence": 0}
    act(client, "delete_selected", edge, post="yes")
    assert not Edge.objects.exists()
    assert Node.objects.count() == 2
    assert set(LogEntry.objects.values_list("object_repr", flat=True)) == {f"edge {edge.pk}"}


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"rel": " "}, "This field is required"),
        ({"rel": "IS"}, "This edge already exists"),
        ({"weight": "nan"}, "Enter a number"),
        ({"target": "0"}, "not one of the available choices"),
        ({"target": "elsewhere"}, "is in another workspace"),
        ({"target": "document", "rel": "MENTIONS"}, "comes from the documents"),
    ],
)
def test_a_wrong_edge_is_refused_beside_its_field(
    client: Client, wrong: dict[str, str], said: str
) -> None:
    ada = make_node(name="Ada")
    document = DocumentFactory(collection=CollectionFactory(workspace=ada.workspace))
    others = {
        "elsewhere": make_node(),
        "document": make_node("doc:a:b", workspace=ada.workspace, document=document),
    }
    make_edge(ada, "IS", ada)
    form = {"source": ada.pk, "rel": "KNOWS", "target": ada.pk, "weight": "1", **wrong}
    if (name := wrong.get("target", "")) in others:
        form["target"] = others[name].pk

    answer = client.post(page_of(Edge, "add"), form)

    assert answer.status_code == 200
    assert said in html.unescape(answer.content.decode())
    assert Edge.objects.count() == 1


def test_nodes_of_an_edge_are_chosen_by_typing_and_never_listed(client: Client) -> None:
    rows = [make_node(f"n{number}", name=f"Node number {number}") for number in range(30)]
    page = client.get(page_of(Edge, "add")).content.decode()
    assert "Node number 7" not in page
    asked = {"app_label": "graph", "model_name": "edge", "field_name": "source", "term": "number 7"}
    answer = client.get(reverse("admin:autocomplete"), asked).json()
    assert [each["id"] for each in answer["results"]] == [str(rows[7].pk)]
    assert answer["results"][0]["text"] == "Node number 7 (n7)"


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


# --- names ---------------------------------------------------------------------------------------


def test_a_name_is_added_in_its_normal_form_and_removed(client: Client) -> None:
    node = make_node(name="Ada")
    form = {"node": node.pk, "form": "The Countess’s  Friend"}
    assert client.post(page_of(Alias, "add"), form).status_code == 302
    alias = Alias.objects.get()
    assert (alias.workspace, alias.node, alias.form) == (node.workspace, node, "countess friend")
    assert found(client, Alias, q="COUNTESS, friend") == {alias}
    assert client.post(page_of(alias, "change"), {"form": "x"}).status_code == 403

    act(client, "delete_selected", alias, post="yes")
    assert not Alias.objects.exists()
    assert Node.objects.get() == node
    assert "countess" not in log_texts()


def test_a_name_that_means_another_node_is_refused(client: Client) -> None:
    node = make_node(name="Ada", form="ada")
    other = make_node(workspace=node.workspace)
    answer = client.post(page_of(Alias, "add"), {"node": other.pk, "form": "ADA"})
    assert "already a name of the node “Ada (" in html.unescape(answer.content.decode())
    answer = client.post(page_of(Alias, "add"), {"node": other.pk, "form": "…!"})
    assert "at least one letter or digit" in answer.content.decode()
    assert Alias.objects.get().node == node

    elsewhere = make_node()
    client.post(page_of(Alias, "add"), {"node": elsewhere.pk, "form": "Ada"})
    assert Alias.objects.count() == 2


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
