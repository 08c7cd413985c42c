"""Where to start: what there is, what is best connected, and finding by name."""

import pytest
from django.test import Client

from documents.tests.views.reading import href, parse, words
from graph.tests.views.conftest import Harbour

pytestmark = pytest.mark.django_db


def test_an_empty_graph_says_where_it_comes_from(client: Client) -> None:
    tree = parse(client.get("/graph/"))

    assert "Nothing is linked yet" in words(tree)
    assert href(tree, "To the collections") == "/documents/"


def test_the_start_shows_numbers_and_the_best_connected(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/"))

    assert "3 things" in words(tree.find(".//*[@class='amounts']"))
    assert "Person 2" in words(tree.find(".//*[@class='amounts']"))
    tiles = [words(tile) for tile in tree.iterfind(".//ul[@class='tiles']/li")]
    assert tiles[0].startswith("Tobias Brandt")
    first = tree.find(".//ul[@class='tiles']/li/a").get("href")
    assert first == "/graph/?id=ent%3Aperson%3Atobias+brandt"


def test_a_name_finds_nodes_and_documents(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/", {"find": "mara"}))
    assert href(tree, "Mara HillagePerson") == "/graph/?id=ent%3Aperson%3Amara+hillage"
    assert "The log" in words(parse(client.get("/graph/", {"find": "the log"})))


def test_a_name_that_nothing_has_leads_on(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/", {"find": "zzz & <b>qqq</b>"}))

    assert tree.findtext(".//h2/bdi") == "zzz & <b>qqq</b>"
    assert words(tree.find(".//h2")).startswith("Nothing has")
    assert href(tree, "Search in the text of documents").startswith("/?q=zzz%20%26%20%3Cb%3E")


def test_options_are_offered_while_typing(client: Client, harbour: Harbour) -> None:
    tree = parse(client.get("/graph/find/", {"find": "tobi"}))
    option = tree.find(".//li[@role='option']")
    assert words(option).startswith("Tobias Brandt")
    assert option.get("data-href") == "/graph/?id=ent%3Aperson%3Atobias+brandt"

    none = parse(client.get("/graph/find/", {"find": "zzzz"}))
    assert none.find(".//li").get("aria-disabled") == "true"
    assert client.get("/graph/find/").status_code == 200


@pytest.mark.parametrize("page", ["/graph/", "/graph/elements/", "/graph/about/", "/graph/find/"])
def test_strangers_log_in_first(page: str) -> None:
    assert Client().get(page).url.startswith("/login/")
