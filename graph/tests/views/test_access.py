"""Nobody sees on a page what they may not read."""

import json

import pytest
from django.test import Client
from lxml import etree

from accounts.models import Membership
from documents.tests.factories import ChunkFactory, DocumentFactory
from graph.tests.factories import make_edge, make_extracted
from graph.tests.views.conftest import Harbour

pytestmark = pytest.mark.django_db
PAGES = ("/graph/", "/graph/elements/", "/graph/about/", "/graph/export/")


@pytest.fixture
def secret(alice: Membership, harbour: Harbour) -> str:
    """Somebody whom only a document of Alice's names, a friend of Tobias."""
    document = DocumentFactory(
        collection=harbour.log.collection, title="Diary", access=[f"user:{alice.user.pk}"]
    )
    chunk = ChunkFactory(document=document, text="Ines Okafor came again.")
    ines = make_extracted("ent:person:ines okafor", chunk, name="Ines Okafor", labels=["Spy"])
    make_edge(harbour.tobias, "LOVES", ines)
    return ines.key


@pytest.mark.parametrize("page", PAGES)
def test_what_only_hidden_documents_name_is_not_there(
    client: Client, bob: Client, secret: str, page: str
) -> None:
    around = {"id": "ent:person:tobias brandt", "format": "json", "hops": 2}

    assert "Ines Okafor" in _text(client, page, around)
    assert "Ines" not in _text(bob, page, around)
    assert "Spy" not in _text(bob, page, around)
    assert "LOVES" not in _text(bob, page, around)


def test_it_is_not_found_nor_counted_either(client: Client, bob: Client, secret: str) -> None:
    assert "Ines Okafor" in client.get("/graph/", {"find": "ines"}).text
    assert "Ines Okafor" not in bob.get("/graph/", {"find": "ines"}).text
    assert "Ines" not in bob.get("/graph/find/", {"find": "okafor"}).text
    assert bob.get("/graph/", {"id": secret}).status_code == 404
    assert "Spy" in client.get("/graph/").text
    assert "Spy" not in bob.get("/graph/").text


def test_what_is_drawn_can_be_taken_along(client: Client, harbour: Harbour) -> None:
    around = {"id": "ent:person:tobias brandt"}
    graphml = client.get("/graph/export/", around | {"format": "graphml"})
    root = etree.fromstring(b"".join(graphml.streaming_content))
    assert graphml["Content-Disposition"] == 'attachment; filename="graph.graphml"'
    nodes = root.findall(".//{*}node")
    assert "ent:place:lighthouse" in {node.get("id") for node in nodes} | {
        data.text for data in root.iterfind(".//{*}data")
    }

    exported = client.get("/graph/export/", around | {"format": "json"})
    elements = json.loads(b"".join(exported.streaming_content))["elements"]
    names = {node["data"]["name"] for node in elements["nodes"]}
    assert names == {"Tobias Brandt", "The log", "Lighthouse"}


def test_another_format_is_refused(client: Client, harbour: Harbour) -> None:
    answer = client.get("/graph/export/", {"id": harbour.mara.key, "format": "xls"})

    assert answer.status_code == 400
    assert "The format “xls” does not exist. Use graphml or json." in answer.text


def _text(client: Client, page: str, params: dict[str, object]) -> str:
    answer = client.get(page, params)
    if answer.streaming:
        return b"".join(answer.streaming_content).decode()
    return str(answer.text)
