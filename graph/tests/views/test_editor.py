"""Nodes and edges are added, changed, merged and deleted on pages."""

import html
from typing import Any
from urllib.parse import urlencode

import pytest
from django.test import Client

from accounts.models import Change, Membership, Role
from documents.tests.factories import ChunkFactory, DocumentFactory, MembershipFactory
from documents.tests.views.reading import href, parse, words
from graph.models import Alias, Edge, Evidence, Mention, Node
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node
from graph.tests.views.conftest import Harbour
from tests.kit import logged_in

pytestmark = pytest.mark.django_db
TOBIAS = "ent:person:tobias brandt"
LIGHTHOUSE = "ent:place:lighthouse"


def page(name: str, **params: Any) -> str:
    """The address of a page of the editor."""
    return f"/graph/{name}/?{urlencode(params, doseq=True)}"


def form_of(client: Client, address: str) -> dict[str, str]:
    """What the form of the page shows."""
    form = client.get(address).context["form"]
    return {field.name: field.value() or "" for field in form}


def errors_of(answer: Any) -> dict[str, str]:
    """The error beside each field."""
    assert answer.status_code == 400
    return {name: " ".join(errors) for name, errors in answer.context["form"].errors.items()}


# --- nodes ---------------------------------------------------------------------------------------


def test_a_node_is_added_and_texts_find_it(client: Client, alice: Membership) -> None:
    form = {
        "id": "src:crm:17/a&b",
        "name": "Zoë Müller",
        "labels": "Person\n\n Customer \nPerson",
        "aliases": "The Countess’s  Friend",
        "props": '{"since": 2020}',
    }
    answer = client.post("/graph/nodes/new/", form)

    node = Node.objects.get()
    assert (node.workspace, node.key, node.origin) == (alice.workspace, "src:crm:17/a&b", "given")
    assert (node.name, node.labels) == ("Zoë Müller", ["Person", "Customer"])
    assert node.props == {"since": 2020}
    assert set(Alias.objects.values_list("form", flat=True)) == {"zoe muller", "countess friend"}
    assert client.get(answer.headers["Location"]).context["node"].id == node.key
    made = Change.objects.filter(user=alice.user, door="page", action="made")
    assert set(made.values_list("kind", flat=True)) == {"node", "alias"}


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"id": "  "}, "id", "This field is required"),
        ({"id": "doc:notes:a.md"}, "id", "This prefix is reserved for documents and passages"),
        ({"id": LIGHTHOUSE}, "id", "“Lighthouse” already has this id"),
        ({"id": "x" * 1025}, "id", "at most 1,024 characters"),
        ({"props": "{"}, "props", "This is not JSON"),
        ({"props": "[1]"}, "props", "Enter a JSON object"),
        ({"props": '{"a": "\\u0000"}'}, "props", "NUL"),
        ({"labels": "x" * 101}, "labels", "at most 100 characters"),
        ({"aliases": "…!"}, "aliases", "at least one letter or digit"),
        ({"aliases": "TOBIAS Brandt"}, "aliases", "already a name of another node"),
        ({"name": "x" * 501}, "name", "at most 500 characters"),
    ],
)
def test_a_wrong_value_is_refused_beside_its_field_and_what_was_typed_stays(
    client: Client, harbour: Harbour, wrong: dict[str, str], field: str, said: str
) -> None:
    form = {"id": "new", "name": "New", **wrong}
    before = Node.objects.count()

    answer = client.post("/graph/nodes/new/", form)

    assert list(errors_of(answer)) == [field]
    assert said in errors_of(answer)[field]
    assert answer.context["form"]["name"].value() == form["name"]
    assert Node.objects.count() == before


def test_describing_an_extracted_node_makes_it_given(client: Client, harbour: Harbour) -> None:
    address = page("node", id=TOBIAS)
    form = form_of(client, address)
    assert form == {
        "name": "Tobias Brandt",
        "labels": "Person",
        "aliases": "tobias brandt",
        "props": "",
    }
    changed = {"name": "Tobias", "labels": "Person", "aliases": "Keeper", "props": '{"a": [1]}'}

    answer = client.post(address, changed)

    node = Node.objects.get(key=TOBIAS)
    assert answer.headers["Location"] == page("", id=TOBIAS).replace("//", "/")
    assert (node.name, node.labels, node.props) == ("Tobias", ["Person"], {"a": [1]})
    assert node.origin == "given"
    assert set(node.aliases.values_list("form", flat=True)) == {"tobias", "keeper"}
    assert "“Tobias” is changed." in words(parse(client.get(answer.headers["Location"])))


def test_nothing_typed_changes_nothing(client: Client, harbour: Harbour) -> None:
    before = Node.objects.values().get(key=TOBIAS), list(Alias.objects.values())
    form = {"name": "Tobias Brandt", "labels": "Person", "aliases": "tobias brandt", "props": ""}

    assert client.post(page("node", id=TOBIAS), form).status_code == 302
    assert (Node.objects.values().get(key=TOBIAS), list(Alias.objects.values())) == before


def test_a_name_that_means_another_node_is_told(client: Client, harbour: Harbour) -> None:
    form = {"id": "src:2", "name": "Tobias Brandt"}
    answer = client.post("/graph/nodes/new/", form, follow=True)

    assert Node.objects.filter(key="src:2").exists()
    assert "Texts with the name “tobias brandt” refer to another node." in words(
        parse(answer).find(".//div[@class='messages']")
    )


def test_a_document_is_not_edited_here_and_gets_edges(client: Client, harbour: Harbour) -> None:
    log = "doc:harbour:log/1.txt"
    for name in ("node", "node/delete", "merge"):
        assert client.get(page(name, id=log)).status_code == 404
    tree = parse(client.get("/graph/", {"id": log}))
    address = href(tree, "New edge")

    form = {"source": log, "rel": "IS_ABOUT", "target": LIGHTHOUSE}
    assert form_of(client, address)["source"] == log
    assert client.post(address, form).headers["Location"] == f"/graph/?{urlencode({'id': log})}"
    assert Edge.objects.get(rel="IS_ABOUT").source.document == harbour.log
    ends = {"source": log, "rel": "IS_ABOUT", "target": LIGHTHOUSE}
    assert client.post(page("edge/delete", **ends)).status_code == 302
    assert Edge.objects.count() == 1


def test_a_node_lists_its_edges_by_page(
    client: Client, harbour: Harbour, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graph.views.editor.EDGES_PER_PAGE", 2)
    for number in range(3):
        other = make_node(f"ent:x:{number}", workspace=harbour.log.workspace, name=f"X {number}")
        make_edge(harbour.lighthouse, "SHINES_ON", other)

    first = parse(client.get(page("node", id=LIGHTHOUSE)))
    assert [words(row) for row in first.iterfind(".//tbody/tr")] == [
        "SHINES_ON X 2 1 Given Change",
        "SHINES_ON X 1 1 Given Change",
        "KEEPS Tobias Brandt 2 Given Change",
    ]
    second = parse(client.get(href(first, "Older edges")))
    assert "SHINES_ON X 0" in words(second)


def test_deleting_says_what_goes_and_leaves_the_rest(client: Client, harbour: Harbour) -> None:
    address = page("node/delete", id=TOBIAS)
    said = words(parse(client.get(address)))
    for part in ("1 edge", "2 passages mention it", "1 name in texts", "returns when one of them"):
        assert part in said
    assert Node.objects.filter(key=TOBIAS).exists()

    assert client.post(address).headers["Location"] == "/graph/"
    assert set(Node.objects.all()) == {harbour.mara, harbour.lighthouse}
    assert not Edge.objects.exists()
    assert Change.objects.get(action="deleted").thing == harbour.tobias.pk


# --- merging -------------------------------------------------------------------------------------


@pytest.fixture
def toby(harbour: Harbour) -> Node:
    """Tobias by another name, who knows Tobias and keeps the same lighthouse."""
    toby = make_extracted("ent:person:toby", harbour.letter.chunks.get(), name="Toby Brandt")
    make_edge(toby, "KEEPS", harbour.lighthouse)
    make_edge(toby, "KNOWS", harbour.tobias)
    return toby


def test_merging_says_what_moves_and_moves_it(client: Client, harbour: Harbour, toby: Node) -> None:
    first = client.get(page("merge", id=TOBIAS))
    assert [each.id for each in first.context["similar"]] == [toby.key]
    assert first.context["preview"] is None

    shown = client.get(page("merge", id=[TOBIAS, toby.key], keep=TOBIAS))
    said = words(parse(shown))
    for part in (
        "1 node goes into it",
        "It gains 0 edges",
        "1 edge is combined",
        "1 edge between these nodes is deleted",
        "It gains 1 mention",
        "It gains 1 name in texts",
        "All of them come from documents",
    ):
        assert part in said
    assert Node.objects.filter(pk=toby.pk).exists()

    done = client.post(shown.context["merge_url"])
    assert done.headers["Location"] == f"/graph/?{urlencode({'id': TOBIAS})}"
    assert not Node.objects.filter(pk=toby.pk).exists()
    assert Edge.objects.get().source == harbour.tobias
    assert Mention.objects.filter(node=harbour.tobias).count() == 3
    assert Alias.objects.get(form="toby").node == harbour.tobias
    assert Change.objects.get(action="merged").thing == harbour.tobias.pk


def test_another_node_to_merge_is_named_or_chosen(
    client: Client, harbour: Harbour, toby: Node
) -> None:
    answer = client.get(page("merge", id=TOBIAS, other="toby brandt"))
    assert answer.headers["Location"] == page("merge", id=[TOBIAS, toby.key], keep=TOBIAS)

    for other, said in (
        ("Nobody", "No node has this name or id."),
        ("tob", "Enter the id of one of these nodes"),
        ("doc:harbour:log/1.txt", "Documents and passages cannot be merged."),
    ):
        assert said in errors_of(client.get(page("merge", id=TOBIAS, other=other)))["other"]
    for ids in ("nobody", "", "doc:harbour:log/1.txt"):
        assert client.get(page("merge", id=ids)).status_code == 404


def test_a_given_node_is_proposed_to_stay(client: Client, harbour: Harbour) -> None:
    shown = client.get(page("merge", id=[TOBIAS, LIGHTHOUSE]))

    assert shown.context["keep"].id == LIGHTHOUSE
    assert "All of them come from documents" not in shown.text


# --- edges ---------------------------------------------------------------------------------------


def test_an_edge_is_added_weighed_and_deleted(client: Client, harbour: Harbour) -> None:
    address = page("edges/new", source=TOBIAS)
    assert form_of(client, address)["source"] == TOBIAS
    form = {"source": TOBIAS, "rel": "KNOWS", "target": "mara hillage", "props": '{"a": 1}'}
    assert client.post(address, form).headers["Location"] == page("node", id=TOBIAS)
    edge = Edge.objects.get(rel="KNOWS")
    assert (edge.source, edge.target, edge.weight) == (harbour.tobias, harbour.mara, 1)
    assert edge.props == {"a": 1}

    ends = {"source": TOBIAS, "rel": "KNOWS", "target": harbour.mara.key}
    assert form_of(client, page("edge", **ends)) == {
        "weight": 1.0,
        "props": '{\n  "a": 1\n}',
    }
    assert client.post(page("edge", **ends), {"weight": "0.5", "props": ""}).status_code == 302
    edge.refresh_from_db()
    assert (edge.weight, edge.props) == (0.5, {})

    make_evidence(harbour.log.chunks.first(), edge)
    said = words(parse(client.get(page("edge/delete", **ends))))
    assert "1 passage states it" in said
    assert client.post(page("edge/delete", **ends)).headers["Location"] == page("node", id=TOBIAS)
    assert not Edge.objects.filter(pk=edge.pk).exists()
    assert not Evidence.objects.exists()


@pytest.mark.parametrize(
    ("wrong", "field", "said"),
    [
        ({"rel": " "}, "rel", "This field is required"),
        ({"rel": "KEEPS"}, "rel", "This edge already exists"),
        ({"rel": "x" * 101}, "rel", "at most 100 characters"),
        ({"weight": "nan"}, "weight", "from 0 to 1,000,000,000"),
        ({"weight": "much"}, "weight", "from 0 to 1,000,000,000"),
        ({"weight": "-1"}, "weight", "from 0 to 1,000,000,000"),
        ({"target": "nobody"}, "target", "No node has this name or id"),
        ({"target": "doc:harbour:log/1.txt", "rel": "MENTIONS"}, "rel", "comes from the documents"),
    ],
)
def test_a_wrong_edge_is_refused_beside_its_field(
    client: Client, harbour: Harbour, wrong: dict[str, str], field: str, said: str
) -> None:
    form = {"source": TOBIAS, "rel": "LOVES", "target": LIGHTHOUSE, **wrong}
    errors = errors_of(client.post("/graph/edges/new/", form))

    assert list(errors) == [field]
    assert said in errors[field]
    assert Edge.objects.count() == 1


def test_an_edge_of_a_node_without_a_description_takes_it_along(
    client: Client, harbour: Harbour
) -> None:
    stub = make_node("stub", workspace=harbour.log.workspace, is_stub=True)
    make_edge(stub, "NEAR", harbour.lighthouse)
    ends = {"source": "stub", "rel": "NEAR", "target": LIGHTHOUSE}

    assert client.post(page("edge/delete", **ends)).headers["Location"] == "/graph/"
    assert not Node.objects.filter(pk=stub.pk).exists()
    assert client.get(page("edge", **ends)).status_code == 404


# --- rights --------------------------------------------------------------------------------------

EDGE = {"source": TOBIAS, "rel": "KEEPS", "target": LIGHTHOUSE}
PAGES = [
    ("nodes/new", {}),
    ("node", {"id": TOBIAS}),
    ("node/delete", {"id": TOBIAS}),
    ("merge", {"id": [TOBIAS, LIGHTHOUSE]}),
    ("edges/new", {}),
    ("edge", EDGE),
    ("edge/delete", EDGE),
]


@pytest.mark.parametrize(("name", "params"), PAGES)
def test_only_editors_come_in_and_only_with_a_token(
    bob: Client, alice: Membership, harbour: Harbour, name: str, params: dict[str, Any]
) -> None:
    address = page(name, **params)
    assert bob.get(address).status_code == 403
    assert bob.post(address).status_code == 403
    assert "New node" not in bob.get("/graph/").text
    assert "/graph/node/" not in bob.get("/graph/", {"id": TOBIAS}).text

    editor = MembershipFactory(workspace=alice.workspace, role=Role.EDITOR)
    assert logged_in(editor).get(address).status_code == 200
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(editor.user)
    assert strict.post(address).status_code == 403
    assert Node.objects.count() == 3


def test_editors_neither_see_nor_touch_what_they_may_not_read(
    alice: Membership, harbour: Harbour
) -> None:
    document = DocumentFactory(
        collection=harbour.log.collection, access=[f"user:{alice.user.pk}"], title="Diary"
    )
    chunk = ChunkFactory(document=document, text="Ines came.", access=document.access)
    ines = make_extracted("ent:person:ines", chunk, name="Ines Okafor")
    make_mention(chunk, harbour.lighthouse)
    edge = make_edge(harbour.lighthouse, "KNOWS", ines, origin="extracted")
    make_evidence(chunk, edge)
    editor = logged_in(MembershipFactory(workspace=alice.workspace, role=Role.EDITOR))
    ends = {"source": LIGHTHOUSE, "rel": "KNOWS", "target": ines.key}

    for name, params in (
        ("node", {"id": ines.key}),
        ("node/delete", {"id": ines.key}),
        ("merge", {"id": ines.key}),
        ("edge", ends),
        ("edge/delete", ends),
    ):
        assert editor.get(page(name, **params)).status_code == 404
        assert editor.post(page(name, **params)).status_code == 404
    for name, params in (
        ("node", {"id": LIGHTHOUSE}),
        ("node/delete", {"id": LIGHTHOUSE}),
        ("merge", {"id": LIGHTHOUSE, "other": "Ines Okafor"}),
    ):
        answer = editor.get(page(name, **params))
        assert "ent:person:ines" not in answer.text
        assert "mentions it" not in html.unescape(answer.text)
    form = {"source": LIGHTHOUSE, "rel": "SEES", "target": "Ines Okafor"}
    assert errors_of(editor.post("/graph/edges/new/", form))["target"]
    assert Node.objects.filter(pk=ines.pk).exists()


@pytest.mark.parametrize(
    "name", ["<script>alert(1)</script>", 'O\'Brien "the \\ quote" & co', "שלום \u202egnp.exe"]
)
def test_strange_names_and_ids_are_only_text(client: Client, harbour: Harbour, name: str) -> None:
    node = make_node(name, workspace=harbour.log.workspace, name=name, labels=[name])
    make_edge(node, "<b>KNOWS</b>", harbour.mara)
    ends = {"source": name, "rel": "<b>KNOWS</b>", "target": harbour.mara.key}

    for address in (
        page("node", id=name),
        page("node/delete", id=name),
        page("merge", id=[name, TOBIAS]),
        page("edges/new", source=name),
        page("edge", **ends),
        page("edge/delete", **ends),
    ):
        answer = client.get(address)
        assert answer.status_code == 200
        tree = parse(answer)
        assert not tree.xpath("//script[contains(., 'alert')]")
        assert not tree.xpath("//b")
    links = {each.get("href") for each in parse(client.get(page("node", id=name))).iter("a")}
    assert {client.get(link).status_code for link in links if link and "/graph/" in link} == {200}
