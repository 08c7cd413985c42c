"""A key that is limited to collections finds, reads and changes nothing else."""

import pytest
from django.test import Client
from rest_framework.test import APIClient

from accounts.models import ApiKey, Membership
from accounts.tests.keys import client_with, make_key
from documents.models import Collection, Document
from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from graph.tests.factories import make_edge, make_evidence, make_extracted, make_mention, make_node

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("media_root")]
API = "/api/v1"


@pytest.fixture
def shelves(alice: Membership) -> tuple[Collection, Collection]:
    """One that the key opens, and one that it does not, with a document each."""
    found = []
    for slug, word in (("open", "kestrel"), ("closed", "osprey")):
        collection = CollectionFactory(workspace=alice.workspace, slug=slug, name=slug)
        row = DocumentFactory(collection=collection, key=f"{word}.md", title=f"The {word}")
        chunk = ChunkFactory(document=row, text=f"The warden keeps the {word}.")
        make_extracted(f"ent:name:{word}", chunk, name=f"The {word}")
        found.append(collection)
    return found[0], found[1]


@pytest.fixture
def limited(alice: Membership, shelves: tuple[Collection, Collection]) -> APIClient:
    _, secret = make_key(alice, collections=[shelves[0].pk])
    return client_with(secret)


def test_it_reads_its_collection_and_finds_no_other(limited: APIClient) -> None:
    kestrel, osprey = Document.objects.order_by("pk")
    shown = [
        limited.get(f"{API}/{path}").getvalue().decode()
        for path in (
            "collections/",
            "documents/",
            "search/?q=warden",
            "search/?q=warden&mode=graph",
            "search/export/?q=warden",
            "graph/nodes/",
            "graph/export/",
            f"documents/{kestrel.pk}/",
            f"documents/{kestrel.pk}/chunks/",
            f"documents/{kestrel.pk}/similar/",
            "collections/open/store/items/?id=kestrel.md",
        )
    ]
    assert [text for text in shown if "osprey" in text] == []
    assert sum("kestrel" in text for text in shown) >= 8
    for path in (
        "collections/closed/",
        f"documents/{osprey.pk}/",
        "search/?q=warden&collection=closed",
        "graph/neighbors/?id=ent:name:osprey",
        "collections/closed/store/",
    ):
        assert limited.get(f"{API}/{path}").status_code == 404, path


def test_it_writes_into_its_collection_and_into_no_other(limited: APIClient) -> None:
    def put(slug: str) -> int:
        body = {"collection": slug, "key": "new.md", "text": "A new text."}
        return limited.post(f"{API}/documents/", body, format="json").status_code

    assert put("open") == 202
    assert put("closed") == 404
    osprey = Document.objects.get(key="osprey.md")
    assert limited.delete(f"{API}/documents/{osprey.pk}/").status_code == 404
    assert Document.objects.filter(pk=osprey.pk).exists()


def test_what_people_put_into_the_graph_belongs_to_no_collection(
    limited: APIClient, alice: Membership, shelves: tuple[Collection, Collection]
) -> None:
    chunk = Document.objects.get(key="kestrel.md").chunks.get()
    gate, wall = (
        make_node(f"src:{name}", workspace=alice.workspace, name=name) for name in ("gate", "wall")
    )
    edge = make_edge(gate, "NEEDS", wall)
    make_mention(chunk, gate)
    make_evidence(chunk, edge)
    shown = limited.get(f"{API}/graph/nodes/").content.decode()
    assert "src:gate" in shown  # a passage of its collection names it
    assert "src:wall" not in shown


def test_a_key_whose_collections_are_gone_opens_nothing(
    limited: APIClient, shelves: tuple[Collection, Collection]
) -> None:
    Collection.objects.filter(pk=shelves[0].pk).delete()
    assert limited.get(f"{API}/collections/").json()["results"] == []


def test_a_key_is_limited_in_the_form_and_over_the_api(
    client: Client, alice: Membership, shelves: tuple[Collection, Collection]
) -> None:
    client.force_login(alice.user)
    form = {"name": "bot", "scopes": ["read"], "days": "30", "collections": [shelves[0].pk]}
    assert "only in" in client.post("/keys/", form).text
    assert ApiKey.objects.get().collections == [shelves[0].pk]
    foreign = CollectionFactory()
    assert client.post("/keys/", form | {"collections": [foreign.pk]}).status_code == 400
    body = {"name": "bot", "scopes": ["read"], "collections": ["closed"]}
    made = client.post(f"{API}/keys/", body, content_type="application/json")
    assert made.json()["collections"] == [shelves[1].pk]
    body["collections"] = [foreign.slug]
    assert client.post(f"{API}/keys/", body, content_type="application/json").status_code == 404
