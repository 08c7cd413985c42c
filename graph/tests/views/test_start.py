"""Where to start: what there is, what is best connected, and finding by name."""

from typing import Any

import pytest
from django.test import Client

from documents.tests.factories import ChunkFactory, CollectionFactory, DocumentFactory
from documents.tests.views.reading import href, parse, words
from graph.tests.factories import make_extracted
from graph.tests.views.conftest import Harbour

pytestmark = pytest.mark.django_db


def test_an_empty_graph_says_where_it_comes_from(client: Client) -> None:
    tree = parse(client.get("/graph/"))

    assert "No links yet" in words(tree)
    assert href(tree, "To the collections") == "/documents/"


def test_the_start_shows_numbers_and_the_best_connected(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/"))

    assert "3 things" in words(tree.find(".//*[@class='amounts']"))
    assert "Person 2" in words(tree.find(".//*[@class='amounts']"))
    tiles = [words(tile) for tile in tree.iterfind(".//ul[@class='tiles']/li")]
    assert tiles[0].startswith("Tobias Brandt")
    first = tree.find(".//ul[@class='tiles']/li/a").get("href")
    assert first == "/graph/?id=ent%3Aperson%3Atobias+brandt"


def named_in(tree: Any, collection: str) -> list[str]:
    """Names in the tiles of the collection, in order."""
    [heading] = [each for each in tree.iterfind(".//h3") if words(each) == collection]
    return [words(tile) for tile in heading.getnext().iterfind("./li//bdi")]


def test_each_collection_shows_what_most_of_its_documents_name(
    client: Client, harbour: Harbour
) -> None:
    manual = CollectionFactory(workspace=harbour.log.workspace, slug="manual", name="Manual")
    pages = [ChunkFactory(document=DocumentFactory(collection=manual)) for _ in range(9)]
    make_extracted("ent:code:manage py", *pages, name="manage.py", labels=["code"])
    make_extracted("ref:/settings", *pages, name="../settings.md", labels=["ref"])
    make_extracted("ent:date:2026", *pages, name="2026", labels=["date"])
    make_extracted("ent:name:valkey", *pages[:5], name="Valkey", labels=["name"])
    make_extracted("ent:name:postgresql", *pages[:7], name="PostgreSQL", labels=["name"])

    tree = parse(client.get("/graph/"))
    assert named_in(tree, "Harbour") == ["Mara Hillage", "Tobias Brandt"]
    assert named_in(tree, "Manual") == ["PostgreSQL", "Valkey"]


def test_a_collection_of_code_shows_its_identifiers(client: Client, harbour: Harbour) -> None:
    source = CollectionFactory(workspace=harbour.log.workspace, slug="source", name="Source")
    module = ChunkFactory(document=DocumentFactory(collection=source))
    make_extracted("ent:code:has chat", module, name="has_chat", labels=["code"])

    assert named_in(parse(client.get("/graph/")), "Source") == ["has_chat"]


def test_part_of_a_name_is_left_out_where_the_whole_stands_for_it(
    client: Client, harbour: Harbour
) -> None:
    letter = harbour.letter.chunks.get()
    log = harbour.log.chunks.first()
    make_extracted("ent:name:mara", letter, log, name="Mara", labels=["name"])
    make_extracted("ent:name:log", letter, log, name="Log", labels=["name"])

    names = named_in(parse(client.get("/graph/")), "Harbour")
    assert names == ["Mara Hillage", "Log", "Tobias Brandt"]


def test_nobody_is_shown_what_others_collections_name(
    client: Client, charlie: Client, harbour: Harbour
) -> None:
    secret = CollectionFactory(workspace=harbour.log.workspace, slug="secret", name="Secret")
    document = DocumentFactory(collection=secret, access=["user:0"])
    chunk = ChunkFactory(document=document, access=["user:0"])
    make_extracted("ent:name:zanzibar", chunk, name="Zanzibar", labels=["name"])

    assert "Zanzibar" not in words(parse(client.get("/graph/")))
    assert "Mara" not in words(parse(charlie.get("/graph/")))


def test_a_name_finds_nodes_and_documents(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/", {"find": "mara"}))
    assert href(tree, "Mara HillagePerson") == "/graph/?id=ent%3Aperson%3Amara+hillage"
    assert "The log" in words(parse(client.get("/graph/", {"find": "the log"})))


def test_a_name_that_nothing_has_leads_on(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/", {"find": "zzz & <b>qqq</b>"}))

    assert tree.findtext(".//h2/bdi") == "zzz & <b>qqq</b>"
    assert words(tree.find(".//h2")).startswith("No name contains")
    assert href(tree, "Search the text of documents").startswith("/?q=zzz%20%26%20%3Cb%3E")


def test_options_are_offered_while_typing(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/find/", {"find": "tobi"}))
    option = tree.find(".//li[@role='option']")
    assert words(option).startswith("Tobias Brandt")
    assert option.get("data-href") == "/graph/?id=ent%3Aperson%3Atobias+brandt"

    none = parse(client.get("/graph/find/", {"find": "zzzz"}))
    assert none.find(".//li").get("aria-disabled") == "true"
    assert client.get("/graph/find/").status_code == 200
